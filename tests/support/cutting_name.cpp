#include "tests/support/cutting_name.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>

namespace kin::testing {

std::string cutting_name(int number) {
  const auto step = [](std::uint64_t h, char c) {
    return (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  const std::string start = fmt::format("{:06}", number) + std::string(240, '-');
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : start) h = step(h, c);
  for (int tail = 0;; ++tail) {
    std::array<char, 4> end;
    std::uint64_t whole = h;
    for (std::size_t i = 0; i < end.size(); ++i)
      whole = step(whole, end[i] = static_cast<char>('0' + (tail >> (6 * i) & 63)));
    if ((whole >> 8 & 0x3ffff) == 0) return start + std::string(end.data(), end.size());
  }
}

}  // namespace kin::testing
