// mbox in all dialects: messages one after the other, each behind a line that begins with "From ". Each
// message is a member as it stands, so that it is what the same message is in a Maildir; the empty line that
// mbox puts behind it is not part of it. A line that was quoted to ">From " stays quoted.
//
// Where a message has such a line in it that nobody quoted, it is cut in two: that costs a little room.
#include "formats/formats.h"
#include "formats/lines_until.h"
#include "formats/mail_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace kin::formats {
namespace mbox {
namespace {

constexpr std::size_t kMostEnvelope = 1024;
constexpr std::size_t kMostWords = 64;
constexpr std::size_t kOneMessageBytes = 256 << 10;
constexpr std::string_view kFrom = "From ";

bool is_one_of(std::string_view word, std::string_view threes) {
  const std::size_t at = word.size() == 3 ? threes.find(word) : std::string_view::npos;
  return at != std::string_view::npos && at % 3 == 0;
}

bool are_digits(std::string_view text, std::size_t least, std::size_t most) {
  return text.size() >= least && text.size() <= most &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_time(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos || !are_digits(word.substr(0, colon), 1, 2)) return false;
  const std::string_view rest = word.substr(colon + 1);
  return are_digits(rest, 2, 2) || (rest.size() == 5 && rest[2] == ':' &&
                                    are_digits(rest.substr(0, 2), 2, 2) && are_digits(rest.substr(3), 2, 2));
}

// "From ", who, and a date as asctime() writes it, perhaps with a time zone before or behind the year.
bool is_envelope(std::string_view line) {
  if (!line.starts_with(kFrom) || line.size() > kMostEnvelope) return false;
  std::vector<std::string_view> words;
  for (std::string_view rest = line; words.size() < kMostWords;) {
    const std::size_t begin = rest.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    words.push_back(rest.substr(0, rest.find_first_of(" \t\r\n")));
    rest.remove_prefix(words.back().size());
  }
  for (std::size_t i = 2; i + 4 < words.size(); ++i) {
    if (!is_one_of(words[i], "MonTueWedThuFriSatSun") ||
        !is_one_of(words[i + 1], "JanFebMarAprMayJunJulAugSepOctNovDec") || !are_digits(words[i + 2], 1, 2) ||
        !is_time(words[i + 3]))
      continue;
    if (are_digits(words[i + 4], 4, 4) || (i + 5 < words.size() && are_digits(words[i + 5], 4, 4)))
      return true;
  }
  return false;
}

// The first line, with its end; nothing if it is too long for one that separates messages.
std::string_view first_line(std::string_view text) {
  text = text.substr(0, kMostEnvelope);
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

bool detect(ByteView head) {
  const std::string_view line = first_line(as_text(head));
  if (!is_envelope(line)) return false;
  const std::string_view next = as_text(head).substr(line.size());
  return is_mail_field(next) || next.starts_with(">From ");
}

// Where an empty line begins that ends at `end`.
std::optional<std::size_t> empty_line_before(std::string_view text, std::size_t end, bool at_line_start) {
  if (end == 0 || text[end - 1] != '\n') return std::nullopt;
  std::size_t begin = end - 1;
  if (begin > 0 && text[begin - 1] == '\r') --begin;
  const bool is_line = begin == 0 ? at_line_start : text[begin - 1] == '\n';
  return is_line ? std::optional(begin) : std::nullopt;
}

// Up to the empty line before the next message, or at the end.
LinesFound find_end(ByteView bytes, bool at_line_start, bool is_all) {
  constexpr std::string_view kNext = "\nFrom ";
  const std::string_view text = as_text(bytes);
  for (std::size_t at = text.find(kNext); at != std::string_view::npos; at = text.find(kNext, at + 1)) {
    const std::optional<std::size_t> empty = empty_line_before(text, at + 1, at_line_start);
    if (!empty) continue;
    if (!is_all && *empty > 0 && text.size() - at <= kMostEnvelope) return {*empty, false};
    if (is_envelope(first_line(text.substr(at + 1)))) return {*empty, true};
  }
  if (!is_all) return {text.size() - kNext.size() - 1, false};
  return {empty_line_before(text, text.size(), at_line_start).value_or(text.size()), true};
}

Result<void> take_line(PeekSource& in, PartSink& out) {
  KIN_TRY_ASSIGN(const ByteView bytes, in.peek(kMostEnvelope));
  const std::size_t size = first_line(as_text(bytes)).size();
  KIN_TRY(out.literal(bytes.first(size)));
  in.skip(size);
  return {};
}

Result<void> open(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  KIN_TRY_ASSIGN(const ByteView start, in.peek(kOneMessageBytes));
  const std::size_t envelope = first_line(as_text(start)).size();
  if (!is_envelope(as_text(start.first(envelope)))) return Error(ErrorCode::corrupt, "not an mbox");
  // One message behind such a line, as programs keep them in files of their own: it is not worth a recipe,
  // unless it is for its own sake.
  if (start.size() < kOneMessageBytes) {
    const ByteView message = start.subspan(envelope);
    const LinesFound end = find_end(message, true, true);
    if (message.size() - end.size <= 2) return kMime.open(in, out, limits);
  }
  for (;;) {
    KIN_TRY(take_line(in, out));  // who it is from
    LinesUntil message(in, find_end, true);
    KIN_TRY(out.member("", message));
    KIN_TRY_ASSIGN(const ByteView rest, in.peek(1));
    if (rest.empty()) return {};
    KIN_TRY(take_line(in, out));  // the empty one
    KIN_TRY_ASSIGN(const ByteView next, in.peek(1));
    if (next.empty()) return {};
  }
}

}  // namespace
}  // namespace mbox

const ContainerFormat kMbox = {"mbox", mbox::detect, mbox::open};

}  // namespace kin::formats
