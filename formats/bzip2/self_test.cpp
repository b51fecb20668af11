#include "formats/bzip2/self_test.h"

#include "formats/bzip2/code_lengths.h"
#include "formats/bzip2/member.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kin::formats::bzip2 {
namespace {

// Words in an order that a small generator gives, now and then another byte, or a run of zeros.
Bytes sample() {
  static constexpr std::array<std::string_view, 8> kWords = {"delta ", "of ",  "the ",   "chain, ",
                                                             "and ",   "its ", "base\n", "blocks "};
  constexpr std::size_t kSize = 20'000;
  Bytes out;
  for (std::uint32_t state = 1; out.size() < kSize;) {
    state = state * 1664525 + 1013904223;
    append(out, as_bytes(kWords[state >> 29]));
    if ((state >> 20) % 16 == 0) out.push_back(static_cast<std::uint8_t>(state >> 8));
    if ((state >> 16) % 64 == 0) out.insert(out.end(), (state >> 8) % 300, 0);
  }
  out.resize(kSize);
  return out;
}

std::uint64_t fnv1a(ByteView bytes) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) out = (out ^ byte) * 0x100000001b3;
  return out;
}

struct Vector {
  std::size_t plain_bytes;
  std::uint64_t stream;  // fnv1a of what the encoder wrote
  Bytes corrections;
};

bool rebuilds(Bytes plain, const Vector& vector) {
  plain.resize(vector.plain_bytes);
  const auto source =
      rebuild(std::make_unique<MemorySource>(plain), std::make_unique<MemorySource>(vector.corrections));
  Bytes stream(plain.size());
  const auto got = source->read(stream);
  return got && fnv1a(ByteView(stream).first(*got)) == vector.stream;
}

// Frequencies like these are flattened until no code is too long.
bool flattens_codes() {
  std::vector<std::uint32_t> fibonacci = {1, 1};
  while (fibonacci.size() < 20) fibonacci.push_back(fibonacci.end()[-1] + fibonacci.end()[-2]);
  static constexpr std::array<std::uint8_t, 20> kByBzip2 = {10, 10, 10, 10, 9, 9, 8, 8, 7, 7,
                                                            6,  6,  5,  5,  4, 4, 3, 3, 2, 2};
  const CodeLengths lengths = make_code_lengths(fibonacci);
  return equal(ByteView(lengths).first(kByBzip2.size()), kByBzip2);
}

}  // namespace

Result<void> self_test() {
  const std::array<Vector, 3> vectors = {{
      // bzip2 -9
      {20'000, 0xa5f4a75737edc273, {0x01, 0x01, 0x09, 0x08, 0xa0, 0x9c, 0x01, 0x02, 0x00}},
      // bzip2 -9 of all but the last 500 bytes, bzip2 -1 of those
      {20'000,
       0x32929bf814df75b6,
       {0x01, 0x01, 0x09, 0x08, 0xac, 0x98, 0x01, 0x02, 0x01, 0x01, 0x08, 0xf4, 0x03, 0x02, 0x00}},
      // lbzip2 of the first 3000 bytes: tables of its own
      {3000, 0x178fbe5707acedff, {0x01, 0x01, 0x09, 0x0c, 0xb8, 0x17, 0x19, 0x02, 0x13, 0x1a, 0x9e, 0x68,
                                  0xaa, 0x90, 0x68, 0x1e, 0xa6, 0x80, 0x68, 0x00, 0x00, 0x08, 0x54, 0x88,
                                  0x9a, 0x34, 0x00, 0x00, 0x00, 0x06, 0x9a, 0x00, 0x02, 0x00}},
  }};
  const Bytes plain = sample();
  bool good = flattens_codes();
  for (const Vector& vector : vectors) good = good && rebuilds(plain, vector);
  if (good) return {};
  return Error(ErrorCode::corrupt, "bzip2: this build does not rebuild streams as it should");
}

}  // namespace kin::formats::bzip2
