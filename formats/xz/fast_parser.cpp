// The rules, in their order; each of them shows in the stream:
//
// 1. A recent distance that gives nice_length bytes is taken, then a match that does.
// 2. A longer match gives way to one that is a byte shorter, but much nearer.
// 3. A recent distance is taken if it gives as many bytes as the match, or one to three fewer and the match
// is far.
// 4. If the match at the next byte is better, or a recent distance goes on there, this byte is a literal.
#include "formats/xz/fast_parser.h"

namespace kin::formats::xz {
namespace {

bool is_much_nearer(std::uint32_t near, std::uint32_t far) { return near < far >> 7; }

}  // namespace

Symbol FastParser::next() {
  if (finder_.ahead() == 0) finder_.find(matches_);
  const Window& window = finder_.window();
  const std::uint8_t* const here = window.data() - 1;
  const std::uint32_t left = std::min(window.ahead() + 1, kLongestMatch);
  if (left < 2) return {};

  const std::uint32_t nice = finder_.nice_length();
  Symbol rep{0, 0};
  for (std::uint32_t i = 0; i < kReps; ++i) {
    const std::uint8_t* const there = here - coder_.reps[i] - 1;
    if (!same_two(here, there)) continue;
    const std::uint32_t length = common_length(here, there, 2, left);
    if (length > rep.length) rep = {i, length};
    if (length < nice) continue;
    finder_.skip(length - 1);
    return {i, length};
  }

  std::uint32_t count = matches_.count;
  Match match{matches_.longest, count > 0 ? matches_.all[count - 1].distance : 0};
  if (match.length >= nice) {
    finder_.skip(match.length - 1);
    return {match.distance + kReps, match.length};
  }
  if (match.length >= 2) {
    for (; count > 1 && match.length == matches_.all[count - 2].length + 1; --count) {
      if (!is_much_nearer(matches_.all[count - 2].distance, match.distance)) break;
      match = matches_.all[count - 2];
    }
    if (match.length == 2 && match.distance >= 0x80) match.length = 1;
  }

  const auto within = [&](std::uint32_t fewer) { return rep.length + fewer >= match.length; };
  if (rep.length >= 2 &&
      (within(1) || (within(2) && match.distance > 1U << 9) || (within(3) && match.distance > 1U << 15))) {
    finder_.skip(rep.length - 1);
    return rep;
  }
  if (match.length < 2 || left <= 2) return {};

  finder_.find(matches_);
  if (is_better_next(match)) return {};
  const std::uint8_t* const next = here + 1;
  const std::uint32_t rest = std::max<std::uint32_t>(2, match.length - 1);
  for (const std::uint32_t distance : coder_.reps)
    if (std::memcmp(next, next - distance - 1, rest) == 0) return {};
  finder_.skip(match.length - 2);
  return {match.distance + kReps, match.length};
}

bool FastParser::is_better_next(const Match& match) const {
  const std::uint32_t length = matches_.longest;
  if (length < 2) return false;
  const std::uint32_t distance = matches_.all[matches_.count - 1].distance;
  return (length >= match.length && distance < match.distance) ||
         (length == match.length + 1 && !is_much_nearer(match.distance, distance)) ||
         length > match.length + 1 ||
         (length + 1 >= match.length && match.length >= 3 && is_much_nearer(distance, match.distance));
}

}  // namespace kin::formats::xz
