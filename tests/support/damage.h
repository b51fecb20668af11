// Every small damage to some bytes: each single byte changed, and each shorter length.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <functional>
#include <string>

namespace kin::testing {

// One bit, the highest bit, and all bits: what bad memory, a bad cable and a bad sector do. `describe` says
// which one it was.
inline void for_each_flip(
    const Bytes& whole, const std::function<void(const Bytes& damaged, const std::string& describe)>& check) {
  Bytes damaged = whole;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      damaged[at] = static_cast<std::uint8_t>(whole[at] ^ mask);
      check(damaged, "byte " + std::to_string(at) + " ^ " + std::to_string(mask));
    }
    damaged[at] = whole[at];
  }
}

// From nothing to all but the last byte.
inline void for_each_cut(
    const Bytes& whole, const std::function<void(const Bytes& damaged, const std::string& describe)>& check) {
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto end = whole.begin() + static_cast<std::ptrdiff_t>(length);
    // A copy of exactly this length, so that the address sanitizer sees a read beyond it.
    check(Bytes(whole.begin(), end), "cut to " + std::to_string(length));
  }
}

inline void for_each_damage(
    const Bytes& whole, const std::function<void(const Bytes& damaged, const std::string& describe)>& check) {
  for_each_flip(whole, check);
  for_each_cut(whole, check);
}

}  // namespace kin::testing
