// Rotations are sorted as suffixes: turned so that its least rotation stands first, a text that is not a
// repetition is less than all its proper suffixes (a Lyndon word), and then its suffixes are in the same
// order as its rotations. Of something repeated, one copy is sorted, and each row stands as often as it is
// repeated.
#include "formats/bzip2/rotations.h"

#include "formats/bzip2/suffix_sort.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace kin::formats::bzip2 {
namespace {

struct LeastRotation {
  std::size_t start;   // where it begins
  std::size_t period;  // the length of what is repeated; all of it, if nothing is
};

// Two candidates race: the one that turns out greater moves past all that was compared, since none of the
// rotations that begin there can be the least.
LeastRotation find_least(ByteView block) {
  const std::size_t size = block.size();
  std::size_t a = 0, b = 1, same = 0;
  const auto wrap = [size](std::size_t at) { return at < size ? at : at - size; };
  while (a < size && b < size && same < size) {
    const std::uint8_t in_a = block[wrap(a + same)], in_b = block[wrap(b + same)];
    if (in_a == in_b) {
      ++same;
      continue;
    }
    (in_a > in_b ? a : b) += same + 1;
    if (a == b) ++b;
    same = 0;
  }
  return {std::min(a, b), same == size ? std::max(a, b) - std::min(a, b) : size};
}

}  // namespace

Rotations sort_rotations(ByteView block) {
  const auto [start, period] = find_least(block);
  Bytes turned(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(period));
  const std::size_t turn = start % period;
  std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(turn), turned.end());
  const std::size_t copies = block.size() / period;
  const auto itself = static_cast<std::int32_t>((period - turn) % period);

  Rotations out;
  out.last_column.resize(block.size());
  std::size_t row = 0;
  for (const std::int32_t at : sort_suffixes(turned)) {
    const std::uint8_t last = at == 0 ? turned.back() : turned[static_cast<std::size_t>(at - 1)];
    for (std::size_t copy = 0; copy < copies; ++copy) out.last_column[row++] = last;
    if (at == itself) out.origin = static_cast<std::uint32_t>(row - 1);
  }
  return out;
}

Bytes join_rotations(ByteView last_column, std::uint32_t origin) {
  // Each row's byte, and above it the row that begins one byte later: a byte's n-th row in the first column
  // is that of its n-th in the last.
  std::array<std::uint32_t, 256> next{};
  for (const std::uint8_t byte : last_column) ++next[byte];
  std::uint32_t sum = 0;
  for (std::uint32_t& count : next) sum += std::exchange(count, sum);
  std::vector<std::uint32_t> rows(last_column.begin(), last_column.end());
  for (std::uint32_t row = 0; row < rows.size(); ++row) rows[next[last_column[row]]++] |= row << 8;

  Bytes out(last_column.size());
  std::uint32_t at = rows[origin] >> 8;
  for (std::uint8_t& byte : out) {
    byte = static_cast<std::uint8_t>(rows[at]);
    at = rows[at] >> 8;
  }
  return out;
}

}  // namespace kin::formats::bzip2
