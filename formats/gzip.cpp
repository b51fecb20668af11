// gzip (RFC 1952): members one after the other, each a header, a deflate stream and eight bytes. What follows
// the last is kept as it is.
#include "formats/deflate_member.h"
#include "formats/formats.h"

#include <limits>
#include <optional>

namespace kin::formats {
namespace {

// Longer names and comments than this are not opened.
constexpr std::size_t kMostHeaderBytes = 64 << 10;
constexpr std::size_t kTrailerBytes = 8;

enum Flag : std::uint8_t { header_check = 2, extra = 4, name = 8, comment = 16, reserved = 0xe0 };

bool is_gzip(ByteView head) {
  return head.size() >= 18 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && (head[3] & reserved) == 0;
}

// What the header says of the deflate stream's level; nothing for the usual one, which is tried first anyway.
std::shared_ptr<const deflate::Opener::Hint> hint_in(ByteView header) {
  constexpr std::uint8_t kBest = 2, kFastest = 4;
  if (header[8] == kBest) return deflate::Opener::hint_of_level(9);
  if (header[8] == kFastest) return deflate::Opener::hint_of_level(1);
  return nullptr;
}

// Nothing if it is not one, or too long.
std::optional<std::size_t> header_size(ByteView head) {
  if (!is_gzip(head)) return std::nullopt;
  std::size_t at = 10;
  const auto skip_text = [&] {
    while (at < head.size() && head[at] != 0) ++at;
    ++at;
  };
  if (head[3] & extra) {
    if (head.size() < 12) return std::nullopt;
    at = 12 + (head[10] | std::size_t{head[11]} << 8);
  }
  if (head[3] & name) skip_text();
  if (head[3] & comment) skip_text();
  if (head[3] & header_check) at += 2;
  return at < head.size() ? std::optional(at) : std::nullopt;
}

Result<void> open_gzip(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  std::shared_ptr<const deflate::Opener::Hint> hint;
  for (bool any = false;; any = true) {
    KIN_TRY_ASSIGN(const ByteView head, in.peek(kMostHeaderBytes));
    const std::optional<std::size_t> size = header_size(head);
    if (!size) {
      if (!any) return Error(ErrorCode::corrupt, "not a gzip file");
      return head.empty() ? Result<void>() : out.member("", in);
    }
    const Bytes header(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(*size));
    in.skip(*size);
    if (!any) hint = hint_in(header);
    DeflateMember member(in, std::numeric_limits<std::uint64_t>::max(), limits, hint);
    KIN_TRY_ASSIGN(const bool opens, member.prepare());
    KIN_TRY(out.literal(header));
    if (!opens) {
      if (!any && member.takes_too_long()) return deflate::takes_too_long();
      if (!any) return Error(ErrorCode::unsupported, "the deflate stream cannot be opened");
      return out.member("", in);
    }
    KIN_TRY(out.coded_member(CodingId::deflate, "", member));
    hint = member.hint();
    KIN_TRY_ASSIGN(const ByteView trailer, in.peek(kTrailerBytes));
    KIN_TRY(out.literal(trailer));
    in.skip(trailer.size());
  }
}

}  // namespace

const ContainerFormat kGzip = {"gzip", is_gzip, open_gzip};

}  // namespace kin::formats
