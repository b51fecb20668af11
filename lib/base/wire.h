// WireWriter and WireReader: how every kin structure becomes bytes and comes back.
// Integers are little-endian or LEB128 varints; strings and byte runs carry a varint length.
//
// The reader trusts nothing: after the first read beyond the end, or of a malformed varint, it is failed,
// every later read answers zero or empty, and finish() gives the Error. So a decoder reads all fields and
// asks once. Counts that drive an allocation go through count(), which bounds them by the bytes that are
// left.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kin {

class WireWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(value); }
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void varint(std::uint64_t value);
  // Zigzag: small negative numbers stay short.
  void signed_varint(std::int64_t value);
  void raw(ByteView bytes) { append(bytes_, bytes); }
  void text(std::string_view value);
  void blob(ByteView value);

  std::size_t size() const { return bytes_.size(); }
  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class WireReader {
 public:
  // The bytes must outlive the reader and every ByteView that it hands out.
  explicit WireReader(ByteView bytes) : bytes_(bytes) {}

  std::uint8_t u8();
  std::uint32_t u32();
  std::uint64_t u64();
  std::uint64_t varint();
  std::int64_t signed_varint();
  // A varint that must not be larger than `most`.
  std::uint64_t varint_up_to(std::uint64_t most);
  ByteView raw(std::size_t size);
  std::string text();
  ByteView blob();
  template <std::size_t N>
  std::array<std::uint8_t, N> array();

  // A count of things of which each takes at least `least_bytes` of what is left; fails the reader if that
  // cannot be.
  std::size_t count(std::size_t least_bytes);
  std::size_t count(std::size_t least_bytes, std::uint64_t most);  // nor may it be more than that

  // For a value that reads well but cannot be.
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t position() const { return at_; }

  // corrupt, unless every byte was read and no read failed. `what` names the structure in the message.
  Result<void> finish(std::string_view what) const;

 private:
  bool take(std::size_t size);

  ByteView bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

template <std::size_t N>
std::array<std::uint8_t, N> WireReader::array() {
  std::array<std::uint8_t, N> out{};
  const ByteView bytes = raw(N);
  if (bytes.size() == N) std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace kin
