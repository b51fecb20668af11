#include "formats/quoted_printable_rule.h"

namespace kin::formats {
namespace {

constexpr std::uint64_t kMostLineLimit = 1 << 30;
constexpr std::uint64_t kEscapeColumns = 3;

bool is_line_end(ByteView rest) {
  return rest.empty() || rest[0] == '\n' || (rest.size() >= 2 && rest[0] == '\r' && rest[1] == '\n');
}

// RFC 2045's: what is printable stays as it is.
const std::bitset<QuotedPrintableRule::kKinds>& usually_escaped() {
  static const auto kUsual = [] {
    std::bitset<QuotedPrintableRule::kKinds> out;
    for (std::size_t byte = 0; byte < 256; ++byte)
      out[byte] = (byte < 32 && byte != '\t' && byte != '\n') || byte == '=' || byte > 126;
    out[QuotedPrintableRule::kSpaceBeforeLineEnd] = true;
    return out;
  }();
  return kUsual;
}

}  // namespace

QuotedPrintableRule::QuotedPrintableRule() : escaped(usually_escaped()) {}

std::size_t QuotedPrintableRule::kind_of(ByteView rest, std::uint64_t column) {
  switch (rest[0]) {
    case '\r':
      return is_line_end(rest) ? kReturnBeforeNewline : rest[0];
    case ' ':
    case '\t':
      return is_line_end(rest.subspan(1)) ? kSpaceBeforeLineEnd : rest[0];
    case '.':
      return column == 0 ? kDotInFront : rest[0];
    case 'F':
      return column == 0 && as_text(rest).starts_with("From ") ? kFromInFront : rest[0];
  }
  return rest[0];
}

bool QuotedPrintableRule::breaks_before(ByteView rest, std::uint64_t column) const {
  if (line_limit == 0 || column == 0 || rest.empty()) return false;
  const bool is_escaped = escapes(rest, column);
  if (!is_escaped && is_line_end(rest)) return false;
  const std::uint64_t end = column + (is_escaped ? kEscapeColumns : 1);
  const bool may_fill = last_fits && is_line_end(rest.subspan(1));
  return end + (may_fill ? 0 : 1) > line_limit;
}

std::uint64_t column_behind(ByteView rest, std::uint64_t column, bool escaped) {
  if (escaped) return column + kEscapeColumns;
  if (rest[0] == '\n') return 0;
  return is_line_end(rest) ? column : column + 1;
}

void QuotedPrintableRule::write(WireWriter& out) const {
  const auto unusual = escaped ^ usually_escaped();
  out.u8(static_cast<std::uint8_t>(lower_case | returns << 1 | last_fits << 2));
  out.varint(line_limit);
  out.varint(unusual.count());
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (unusual[kind]) out.varint(kind);
}

QuotedPrintableRule QuotedPrintableRule::read(WireReader& in) {
  QuotedPrintableRule out;
  const std::uint8_t flags = in.u8();
  if (flags > 7) in.fail();
  out.lower_case = flags & 1;
  out.returns = flags & 2;
  out.last_fits = flags & 4;
  out.line_limit = in.varint_up_to(kMostLineLimit);
  const std::uint64_t unusual = in.varint_up_to(kKinds);
  for (std::uint64_t i = 0; i < unusual; ++i)
    if (const std::uint64_t kind = in.varint_up_to(kKinds - 1); !in.failed()) out.escaped.flip(kind);
  return out;
}

}  // namespace kin::formats
