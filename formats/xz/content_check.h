// ContentCheck: the sum of a block's plain bytes that stands behind it. One thread at a time.
#pragma once

#include "formats/checksums.h"
#include "formats/xz/sha256.h"

#include <optional>

namespace kin::formats::xz {

// As in a stream's header; written to disk.
enum class CheckId : std::uint8_t { none = 0, crc32 = 1, crc64 = 4, sha256 = 10 };
std::optional<CheckId> parse_check(std::uint8_t id);  // nothing: no other is known
std::size_t check_bytes(CheckId id);

class Crc64 {
 public:
  void add(ByteView bytes);
  std::uint64_t value() const { return ~state_; }

 private:
  std::uint64_t state_ = ~std::uint64_t{0};
};

class ContentCheck {
 public:
  explicit ContentCheck(CheckId id) : id_(id) {}

  void add(ByteView plain);
  // As it stands behind the block. Only once.
  Bytes finish();

 private:
  CheckId id_;
  Crc32 crc32_;
  Crc64 crc64_;
  Sha256 sha256_;
};

}  // namespace kin::formats::xz
