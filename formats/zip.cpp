// zip and its family (docx, xlsx, pptx, odt, jar, apk, epub, whl), from front to back: local headers and the
// members behind them. The central directory is not needed for that, and is kept as it is, as are encrypted
// members and those of other methods. Between members, the next local header is looked for, so that a data
// descriptor, a signing block or a member whose size nobody tells does no harm.
#include "formats/deflate_member.h"
#include "formats/formats.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace kin::formats {
namespace {

constexpr std::size_t kHeaderBytes = 30;
constexpr std::size_t kSearchBytes = 64 << 10;
constexpr std::uint64_t kMostTriedBytes = 128 << 20;
constexpr std::string_view kSignature = "PK\3\4";
constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

std::uint32_t u16(ByteView bytes, std::size_t at) { return bytes[at] | std::uint32_t{bytes[at + 1]} << 8; }
std::uint32_t u32(ByteView bytes, std::size_t at) { return u16(bytes, at) | u16(bytes, at + 2) << 16; }
std::uint64_t u64(ByteView bytes, std::size_t at) {
  return u32(bytes, at) | std::uint64_t{u32(bytes, at + 4)} << 32;
}

bool is_zip(ByteView head) { return head.size() >= kHeaderBytes && as_text(head).starts_with(kSignature); }

struct LocalHeader {
  std::size_t size;
  std::uint32_t method;
  bool encrypted;
  std::uint64_t member_size;  // as it stands in the file; kUnknown: its end tells
  std::string name;
};

// Zip64's size, which stands in the extra field behind the plain size.
std::uint64_t zip64_size(ByteView extra, bool plain_size_too) {
  while (extra.size() >= 4) {
    const std::size_t size = u16(extra, 2);
    if (size > extra.size() - 4) break;
    const ByteView value = extra.subspan(4, size);
    const std::size_t at = plain_size_too ? 8 : 0;
    if (u16(extra, 0) == 1) return value.size() >= at + 8 ? u64(value, at) : kUnknown;
    extra = extra.subspan(4 + size);
  }
  return kUnknown;
}

std::optional<LocalHeader> read_header(ByteView head) {
  if (!is_zip(head)) return std::nullopt;
  const std::size_t name_size = u16(head, 26), extra_size = u16(head, 28);
  LocalHeader out{
      kHeaderBytes + name_size + extra_size, u16(head, 8), (u16(head, 6) & 1) != 0, u32(head, 18), {}};
  if (out.size > head.size()) return std::nullopt;
  out.name = as_text(head.subspan(kHeaderBytes, name_size));
  if (out.member_size == 0xffffffff)
    out.member_size =
        zip64_size(head.subspan(kHeaderBytes + name_size, extra_size), u32(head, 22) == 0xffffffff);
  const bool in_descriptor = (u16(head, 6) & 8) != 0;
  if (in_descriptor && out.member_size == 0) out.member_size = kUnknown;
  return out;
}

// Up to the next thing that has a signature: a local header, a descriptor, the central directory.
class UntilSignature : public ByteSource {
 public:
  explicit UntilSignature(PeekSource& in) : in_(in) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size() && !ended_) {
      KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(kSearchBytes));
      const std::size_t found = find(as_text(bytes));
      const std::size_t before = found != std::string_view::npos ? found
                                 : bytes.size() < kSearchBytes   ? bytes.size()
                                                                 : bytes.size() - (kSignature.size() - 1);
      ended_ = before == found || bytes.size() < kSearchBytes;
      const std::size_t size = std::min(before, into.size() - done);
      if (size < before) ended_ = false;
      std::copy_n(bytes.begin(), size, into.begin() + static_cast<std::ptrdiff_t>(done));
      in_.skip(size);
      done += size;
    }
    return done;
  }

 private:
  static std::size_t find(std::string_view text) {
    for (std::size_t at = text.find("PK"); at != std::string_view::npos; at = text.find("PK", at + 1))
      for (const std::string_view kind : {"\3\4", "\7\10", "\1\2"})
        if (text.substr(at + 2).starts_with(kind)) return at;
    return std::string_view::npos;
  }

  PeekSource& in_;
  bool ended_ = false;
};

class Zip {
 public:
  Zip(PeekSource& in, PartSink& out, const ContainerLimits& limits) : in_(in), out_(out), limits_(limits) {}

  Result<void> run() {
    for (;;) {
      KIN_TRY_ASSIGN(const ByteView head, in_.peek(kHeaderBytes + (128 << 10)));
      if (head.empty()) return {};
      // What was made to look like a thousand members within one another. Without its first bytes nobody
      // takes it for a zip again.
      if (tried_bytes_ > kMostTriedBytes + 8 * in_.position()) {
        const std::size_t start = std::min(head.size(), kSignature.size());
        KIN_TRY(out_.literal(head.first(start)));
        in_.skip(start);
        return out_.member("", in_);
      }
      const std::optional<LocalHeader> header = read_header(head);
      if (!header) {
        KIN_TRY(search());
        continue;
      }
      KIN_TRY(out_.literal(head.first(header->size)));
      in_.skip(header->size);
      KIN_TRY(member(*header));
    }
  }

 private:
  Result<void> as_it_is(const LocalHeader& header) {
    if (header.member_size == kUnknown || header.member_size == 0) return {};
    LimitedSource bytes(in_, header.member_size);
    return out_.member(header.name, bytes);
  }

  Result<void> member(const LocalHeader& header) {
    if (header.method != 8 || header.encrypted || header.member_size == 0) return as_it_is(header);
    DeflateMember deflated(in_, header.member_size, limits_, hint_);
    KIN_TRY_ASSIGN(const bool opens, deflated.prepare());
    tried_bytes_ += deflated.tried_bytes();
    if (!opens) return as_it_is(header);
    KIN_TRY(out_.coded_member(CodingId::deflate, header.name, deflated));
    hint_ = deflated.hint();
    return {};
  }

  // To the next local header, or as far as one look goes.
  Result<void> search() {
    KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(kSearchBytes));
    const std::size_t found = as_text(bytes).find(kSignature, 1);
    std::size_t size = found;
    if (found == std::string_view::npos) {
      size = bytes.size() < kSearchBytes ? bytes.size() : bytes.size() - (kSignature.size() - 1);
      // As long as this it is a member, of unknown size: to be cut by its content.
      if (bytes.size() == kSearchBytes && !as_text(bytes).starts_with("PK")) {
        UntilSignature member(in_);
        return out_.member("", member);
      }
    }
    KIN_TRY(out_.literal(bytes.first(size)));
    in_.skip(size);
    return {};
  }

  PeekSource& in_;
  PartSink& out_;
  const ContainerLimits& limits_;
  std::uint64_t tried_bytes_ = 0;  // for nothing
  std::shared_ptr<const deflate::Opener::Hint> hint_;
};

Result<void> open_zip(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  return Zip(in, out, limits).run();
}

}  // namespace

const ContainerFormat kZip = {"zip", is_zip, open_zip};

}  // namespace kin::formats
