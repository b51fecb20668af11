// tar in all dialects: blocks of 512 bytes, a header and the content it announces, again and again. Of the
// headers, only what says how long the content is is understood: ustar's and GNU's sizes, pax's size record,
// GNU's sparse maps. All else is kept as it is.
#include "formats/formats.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace kin::formats {
namespace {

constexpr std::size_t kBlock = 512;
// Of a pax header; names are in there, and nothing else is as long.
constexpr std::uint64_t kMostPaxBytes = 1 << 20;

ByteView field(ByteView header, std::size_t offset, std::size_t size) { return header.subspan(offset, size); }

// Octal digits between spaces, or GNU's binary form.
std::optional<std::uint64_t> number(ByteView bytes) {
  if (bytes[0] & 0x80) {
    if (bytes[0] != 0x80) return std::nullopt;  // negative, or of no use
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes.subspan(1)) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | byte;
    }
    return value;
  }
  std::uint64_t value = 0;
  std::size_t at = 0;
  while (at < bytes.size() && bytes[at] == ' ') ++at;
  for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '7'; ++at)
    value = value * 8 + (bytes[at] - '0');
  if (at < bytes.size() && bytes[at] != ' ' && bytes[at] != 0) return std::nullopt;
  return value;
}

bool has_right_sum(ByteView header) {
  const auto wanted = number(field(header, 148, 8));
  std::uint64_t sum = 8 * ' ';
  std::int64_t signed_sum = 8 * ' ';  // as some old programs count
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i >= 148 && i < 156) continue;
    sum += header[i];
    signed_sum += static_cast<std::int8_t>(header[i]);
  }
  return wanted && (*wanted == sum || static_cast<std::int64_t>(*wanted) == signed_sum);
}

bool is_tar(ByteView head) {
  return head.size() >= kBlock && head[0] != 0 && has_right_sum(head.first(kBlock));
}

std::string text(ByteView bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), 0);
  return std::string(bytes.begin(), end);
}

struct PaxRecords {
  std::optional<std::uint64_t> size;
  std::string path;
};

PaxRecords read_pax(std::string_view records) {
  PaxRecords out;
  while (!records.empty()) {
    std::size_t length = 0;
    const auto parsed = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(parsed.ptr - records.data());
    if (parsed.ec != std::errc() || length <= digits + 1 || length > records.size()) break;
    const std::string_view record =
        records.substr(digits + 1, length - digits - 2);  // without the line's end
    if (record.starts_with("size=")) {
      std::uint64_t value = 0;
      const auto read = std::from_chars(record.data() + 5, record.data() + record.size(), value);
      if (read.ec == std::errc()) out.size = value;
    }
    if (record.starts_with("path=")) out.path = record.substr(5);
    records.remove_prefix(length);
  }
  return out;
}

class Tar {
 public:
  Tar(PeekSource& in, PartSink& out) : in_(in), out_(out) {}

  Result<void> run() {
    for (;;) {
      KIN_TRY_ASSIGN(const ByteView head, in_.peek(kBlock));
      if (head.empty()) return {};
      // The end, or what is no tar: zeros, and whatever comes behind them.
      if (!is_tar(head)) return out_.member("", in_);
      KIN_TRY(entry(Bytes(head.begin(), head.end())));
    }
  }

 private:
  Result<void> take_literal(std::size_t size) {
    KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(size));
    KIN_TRY(out_.literal(bytes));
    in_.skip(bytes.size());
    return {};
  }

  Result<void> entry(const Bytes& header) {
    KIN_TRY(take_literal(kBlock));
    const char type = static_cast<char>(header[156]);
    std::uint64_t size = number(field(header, 124, 12)).value_or(0);
    if (type == 'x' || type == 'g' || type == 'X') {
      if (size > kMostPaxBytes) return {};
      KIN_TRY_ASSIGN(const ByteView records, in_.peek(static_cast<std::size_t>(size)));
      if (type != 'g') next_ = read_pax(as_text(records));
      KIN_TRY(take_literal(static_cast<std::size_t>(size)));
      return padding(size);
    }
    if (type == 'L' || type == 'K') {  // the next entry's long name or link target
      if (size > kMostPaxBytes) return {};
      KIN_TRY_ASSIGN(const ByteView name, in_.peek(static_cast<std::size_t>(size)));
      if (type == 'L') next_.path = text(name);
      KIN_TRY(take_literal(static_cast<std::size_t>(size)));
      return padding(size);
    }
    const PaxRecords known = std::exchange(next_, {});
    size = known.size.value_or(size);
    // Links, devices and directories have none, whatever they say.
    if (type >= '1' && type <= '6') return {};
    if (type == 'S') KIN_TRY(sparse_maps(header));
    if (size == 0) return {};
    LimitedSource content(in_, size);
    KIN_TRY(out_.member(known.path.empty() ? name_of(header) : known.path, content));
    return padding(size);
  }

  static std::string name_of(const Bytes& header) {
    const std::string name = text(field(header, 0, 100));
    const bool ustar = as_text(field(header, 257, 6)) == std::string_view("ustar\0", 6);
    const std::string prefix = ustar ? text(field(header, 345, 155)) : "";
    return prefix.empty() ? name : prefix + "/" + name;
  }

  // GNU's old form: the header's map goes on in blocks of its own.
  Result<void> sparse_maps(const Bytes& header) {
    bool more = header[482] != 0;
    while (more) {
      KIN_TRY_ASSIGN(const ByteView map, in_.peek(kBlock));
      if (map.size() < kBlock) return {};
      more = map[504] != 0;
      KIN_TRY(take_literal(kBlock));
    }
    return {};
  }

  Result<void> padding(std::uint64_t size) {
    return take_literal(static_cast<std::size_t>((kBlock - size % kBlock) % kBlock));
  }

  PeekSource& in_;
  PartSink& out_;
  PaxRecords next_;  // what a header before said of the next entry
};

Result<void> open_tar(PeekSource& in, PartSink& out, const ContainerLimits&) { return Tar(in, out).run(); }

}  // namespace

const ContainerFormat kTar = {"tar", is_tar, open_tar};

}  // namespace kin::formats
