// ShingleFilter: which of many shingles may have a small hash, without hashing them. A value, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace kin {

class ShingleFilter {
 public:
  static constexpr std::size_t kShingles = 32;  // that are looked at together
  static constexpr unsigned kMostBytes = 16;    // of a shingle

  // Whether this processor has what it takes.
  static bool is_supported();

  // The hash is `constant` xor part(i, byte i) for each byte i of the shingle, and part(i, b) is linear in
  // the bits of b. is_supported(), and `bytes` is at most kMostBytes.
  ShingleFilter(unsigned bytes, std::uint32_t constant,
                const std::function<std::uint32_t(unsigned i, std::uint8_t byte)>& part);

  // Bit i is set if the hash of the shingle at data[i] has a first byte of at most `most`. Reads kShingles +
  // bytes - 1 bytes.
  std::uint32_t candidates(const std::uint8_t* data, std::uint8_t most) const;

  // All of the hash, of the shingle at `data`.
  std::uint32_t hash(const std::uint8_t* data) const {
    std::uint32_t out = 0;
    for (const auto& part : parts_) out ^= part[*data++];
    return out;
  }

 private:
  // The first byte of the hash's part, by the low and the high half of a byte; twice, once per half register.
  struct Halves {
    std::uint8_t low[32], high[32];
  };
  std::vector<Halves> positions_;
  std::vector<std::array<std::uint32_t, 256>> parts_;  // the constant is in the first
};

}  // namespace kin
