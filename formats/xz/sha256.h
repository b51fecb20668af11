// SHA-256 (FIPS 180-4), of bytes that come in pieces. In code of our own: a restore must not depend on a
// library.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>

namespace kin::formats::xz {

class Sha256 {
 public:
  void add(ByteView bytes);
  // Only once.
  std::array<std::uint8_t, 32> finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  void add_block(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlockBytes> waiting_{};
  std::size_t waiting_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace kin::formats::xz
