// Bytes owns, ByteView borrows. A ByteView parameter is valid for the call only.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace kin {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool equal(ByteView a, ByteView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Memory to write to, kept between calls: fresh memory costs as much as most work does. What was in it is
// gone, and it grows to what is asked for, not to twice that.
inline std::span<std::uint8_t> scratch_of(Bytes& kept, std::size_t size) {
  if (kept.size() < size) {
    Bytes().swap(kept);
    kept.resize(size);
  }
  return std::span(kept).first(size);
}

inline void append(Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace kin
