#include "tests/support/random_bytes.h"

#include <array>
#include <string_view>

namespace kin::testing {

Bytes random_bytes(std::uint64_t seed, std::size_t size) {
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

Bytes text_like(std::uint64_t seed, std::size_t size) {
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

Bytes structured_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Bytes out;
  for (std::uint32_t i = 0; out.size() < size; ++i) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(i >> shift));
    out.insert(out.end(), {0, 0, static_cast<std::uint8_t>(random.below(4)), 0xff});
    append(out, as_bytes("name="));
    out.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  }
  out.resize(size);
  return out;
}

Bytes program_like(std::uint64_t seed, std::size_t size) {
  static constexpr std::array<std::uint8_t, 8> kOperations = {0x48, 0x89, 0x8b, 0xe8, 0x0f, 0x83, 0xc7, 0x55};
  Random random(seed);
  Bytes out;
  out.reserve(size + 4096);
  const auto put = [&out](std::uint64_t value, std::size_t width) {
    for (; width > 0; --width, value >>= 8) out.push_back(static_cast<std::uint8_t>(value));
  };
  while (out.size() < size) {
    for (std::uint64_t i = 100 + random.below(400); i > 0; --i) {
      const std::uint8_t operation = kOperations[random.below(8)];
      put(operation, 1);
      put(0x40 + random.below(32), 1);
      if (operation == 0xe8) put(random.below(256) * 4096 - out.size(), 4);
    }
    for (std::uint64_t i = random.below(40), at = random.below(1 << 20); i > 0;
         --i, at += 8 * random.below(4)) {
      put(at, 8);
      put(8, 8);
      put(random.below(1 << 16), 8);
    }
  }
  out.resize(size);
  return out;
}

}  // namespace kin::testing
