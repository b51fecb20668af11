#include "tests/support/random_bytes.h"

#include <array>
#include <cstring>
#include <string_view>

namespace kin::testing {

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t limit) { return next() % limit; }

Bytes random_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Bytes out(size);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = random.next();
    std::array<std::uint8_t, 8> bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(word >> (8 * i));
    std::memcpy(out.data() + at, bytes.data(), 8);
  }
  for (std::uint64_t word = random.next(); at < size; ++at, word >>= 8)
    out[at] = static_cast<std::uint8_t>(word);
  return out;
}

Bytes text_like(std::uint64_t seed, std::size_t size) {
  static constexpr std::array<std::string_view, 16> kSyllables = {
      "ba", "ke", "lo", "mi", "nu", "pra", "si", "to", "ve", "xi", "zor", "el", "an", "ir", "und", "der"};
  Random random(seed);
  Bytes out(size + 16);  // a word has 13 bytes at most
  std::size_t at = 0;
  while (at < size) {
    for (std::uint64_t i = 1 + random.below(4); i > 0; --i) {
      const std::string_view syllable = kSyllables[random.below(16)];
      std::memcpy(out.data() + at, syllable.data(), syllable.size());
      at += syllable.size();
    }
    out[at++] = random.below(12) == 0 ? '\n' : ' ';
  }
  out.resize(size);
  return out;
}

Bytes compressible_bytes(std::uint64_t seed, std::size_t size) {
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
