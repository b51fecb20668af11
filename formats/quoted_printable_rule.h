// QuotedPrintableRule: what an encoder of quoted-printable is expected to do with each byte. Both sides ask
// it, with what has come out so far; so it is part of the format, and never changes.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/wire.h"

#include <bitset>

namespace kin::formats {

struct QuotedPrintableRule {
  // What an encoder did otherwise than expected. Written to disk.
  static constexpr std::uint8_t kOtherForm = 1;   // escaped, or not
  static constexpr std::uint8_t kOtherCase = 2;   // of the escape's digits
  static constexpr std::uint8_t kOtherBreak = 4;  // a soft line break in front, or none
  static constexpr unsigned kChoiceBits = 3;

  // Kinds of bytes: each value, but in some places it is a kind of its own.
  static constexpr std::size_t kReturnBeforeNewline = 256;
  static constexpr std::size_t kSpaceBeforeLineEnd = 257;
  static constexpr std::size_t kDotInFront = 258;   // of a line
  static constexpr std::size_t kFromInFront = 259;  // the F of "From "
  static constexpr std::size_t kKinds = 260;
  // The byte at the front of `rest`, which has kLookAhead bytes or all that there are; `column` is where it
  // comes.
  static constexpr std::size_t kLookAhead = 5;
  static std::size_t kind_of(ByteView rest, std::uint64_t column);

  QuotedPrintableRule();

  bool escapes(ByteView rest, std::uint64_t column) const { return escaped[kind_of(rest, column)]; }
  bool breaks_before(ByteView rest, std::uint64_t column) const;
  std::string_view soft_break() const { return returns ? "=\r\n" : "=\n"; }

  void write(WireWriter& out) const;
  static QuotedPrintableRule read(WireReader& in);
  static constexpr std::size_t kMostBytes = 16 + 2 * kKinds;  // as written

  bool lower_case = false;
  bool returns = false;          // soft breaks end in a return and a newline
  bool last_fits = false;        // the last byte of a line may stand where a soft break would begin
  std::uint64_t line_limit = 0;  // with the soft break's sign; 0: lines are never broken
  std::bitset<kKinds> escaped;
};

// Where the next byte comes, after this one.
std::uint64_t column_behind(ByteView rest, std::uint64_t column, bool escaped);

}  // namespace kin::formats
