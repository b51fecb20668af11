// Content for tests: the same for the same seed, on every machine and for ever, so that tests may pin what
// comes of it.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace kin::testing {

// splitmix64: two lines, no state to get wrong, and no codec finds anything in it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

 private:
  std::uint64_t state_;
};

// Does not compress.
inline Bytes random_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Bytes out(size);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = random.next();
    for (std::size_t i = 0; i < 8; ++i) out[at + i] = static_cast<std::uint8_t>(word >> (8 * i));
  }
  for (std::uint64_t word = random.next(); at < size; ++at, word >>= 8)
    out[at] = static_cast<std::uint8_t>(word);
  return out;
}

// Words and lines, as in source code or mail: shrinks to about a third.
inline Bytes text_like(std::uint64_t seed, std::size_t size) {
  static constexpr std::array<std::string_view, 16> kSyllables = {
      "ba", "ke", "lo", "mi", "nu", "pra", "si", "to", "ve", "xi", "zor", "el", "an", "ir", "und", "der"};
  Random random(seed);
  Bytes out;
  out.reserve(size + 16);
  while (out.size() < size) {
    for (std::uint64_t i = 1 + random.below(4); i > 0; --i)
      append(out, as_bytes(kSyllables[random.below(16)]));
    out.push_back(random.below(12) == 0 ? '\n' : ' ');
  }
  out.resize(size);
  return out;
}

// Long runs that repeat, with a little noise between: shrinks to less than a tenth.
inline Bytes compressible_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  const Bytes phrases = random_bytes(random.next(), 4096);
  Bytes out;
  out.reserve(size + 1024);
  while (out.size() < size) {
    const std::size_t length = 256 + random.below(768);
    append(out, ByteView(phrases).subspan(random.below(phrases.size() - length), length));
    out.push_back(static_cast<std::uint8_t>(random.next()));
  }
  out.resize(size);
  return out;
}

}  // namespace kin::testing
