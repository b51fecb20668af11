// cpio in all dialects: a header, a name and the content, again and again. An initramfs is several archives
// with zeros between them, the last of them often compressed: what is neither header nor zeros is handed out
// as it is, and opens by itself if it is a container.
#include "formats/fields.h"
#include "formats/formats.h"
#include "formats/parts.h"

#include <array>
#include <optional>
#include <string>

namespace kin::formats {
namespace {

constexpr std::uint64_t kMostCpioName = 4096;
constexpr std::size_t kMostCpioHeader = 110;

// Of one dialect: what its headers say, with sizes of everything.
struct CpioHeader {
  std::uint64_t size = 0;  // of the header alone
  std::uint64_t mode = 0;
  std::uint64_t name_size = 0;
  std::uint64_t content_size = 0;
  std::uint64_t alignment = 1;  // of what follows the name, and of the next header
};

// SVR4's, without and with sums: thirteen fields of eight hexadecimal digits.
std::optional<CpioHeader> read_new_cpio(ByteView head) {
  if (head.size() < kMostCpioHeader) return std::nullopt;
  const std::string_view magic = as_text(head.first(6));
  if (magic != "070701" && magic != "070702") return std::nullopt;
  std::array<std::uint64_t, 13> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto value = digits(head.subspan(6 + 8 * i, 8), 16);
    if (!value) return std::nullopt;
    fields[i] = *value;
  }
  return CpioHeader{kMostCpioHeader, fields[1], fields[11], fields[6], 4};
}

// POSIX's old one: octal digits.
std::optional<CpioHeader> read_octal_cpio(ByteView head) {
  constexpr std::size_t kBytes = 76;
  if (head.size() < kBytes || as_text(head.first(6)) != "070707") return std::nullopt;
  const auto mode = digits(head.subspan(18, 6), 8);
  const auto name_size = digits(head.subspan(59, 6), 8);
  const auto content_size = digits(head.subspan(65, 11), 8);
  if (!mode || !name_size || !content_size) return std::nullopt;
  return CpioHeader{kBytes, *mode, *name_size, *content_size, 1};
}

// The oldest: words of 16 bits in the byte order of the machine; of two words, the higher comes first.
std::optional<CpioHeader> read_binary_cpio(ByteView head) {
  constexpr std::size_t kBytes = 26;
  constexpr std::uint64_t kMagic = 070707;
  if (head.size() < kBytes) return std::nullopt;
  const bool little = little_endian(head.first(2)) == kMagic;
  if (!little && big_endian(head.first(2)) != kMagic) return std::nullopt;
  const auto word = [&](std::size_t i) {
    const ByteView field = head.subspan(2 * i, 2);
    return little ? little_endian(field) : big_endian(field);
  };
  return CpioHeader{kBytes, word(3), word(10), word(11) << 16 | word(12), 2};
}

std::uint64_t cpio_padding(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

struct CpioEntry {
  std::size_t header_size;  // with the name and what pads it
  std::string name;
  bool is_file;
  std::uint64_t content_size;
  std::size_t content_padding;
};

std::optional<CpioEntry> read_cpio_entry(ByteView head) {
  std::optional<CpioHeader> header = read_new_cpio(head);
  if (!header) header = read_octal_cpio(head);
  if (!header) header = read_binary_cpio(head);
  if (!header) return std::nullopt;
  // A magic number of two bytes proves little. So the name has to end where it says, too.
  const std::uint64_t end = header->size + header->name_size;
  if (header->name_size == 0 || header->name_size > kMostCpioName || end > head.size() || head[end - 1] != 0)
    return std::nullopt;
  return CpioEntry{static_cast<std::size_t>(end + cpio_padding(end, header->alignment)),
                   std::string(text_in(head.subspan(header->size, header->name_size))),
                   (header->mode & 0170000) == 0100000, header->content_size,
                   static_cast<std::size_t>(cpio_padding(header->content_size, header->alignment))};
}

bool is_cpio(ByteView head) { return read_cpio_entry(head).has_value(); }

Result<void> open_cpio(PeekSource& in, PartSink& out, const ContainerLimits&) {
  for (;;) {
    KIN_TRY_ASSIGN(const ByteView head, in.peek(kMostCpioHeader + kMostCpioName));
    if (head.empty()) return {};
    const std::optional<CpioEntry> entry = read_cpio_entry(head);
    if (!entry) {
      std::size_t zeros = 0;
      while (zeros < head.size() && head[zeros] == 0) ++zeros;
      if (zeros == 0) return take_rest(in, out);
      KIN_TRY(take_literal(in, out, zeros));
      continue;
    }
    KIN_TRY(take_literal(in, out, entry->header_size));
    if (entry->is_file && entry->content_size > 0) {
      LimitedSource content(in, entry->content_size);
      KIN_TRY(out.member(entry->name, content));
    } else {  // where a symlink leads to
      KIN_TRY(take_gap(in, out, entry->content_size));
    }
    KIN_TRY(take_literal(in, out, entry->content_padding));
  }
}

}  // namespace

const ContainerFormat kCpio = {"cpio", is_cpio, open_cpio};

}  // namespace kin::formats
