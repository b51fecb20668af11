// What is opened at most. To compress as xz -6 does takes a third of a second for each megabyte of content,
// once to open it and once for each restore; so what would take minutes stays closed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kin::formats::xz {

// Of a file, or a member of a container. As much is held in memory, to know what is in it before it is
// opened.
inline constexpr std::size_t kMostEncodedBytes = 64U << 20;
inline constexpr std::uint64_t kMostPlainBytes = std::uint64_t{512} << 20;
// The tables of an encoder. As many encoders run as there are threads, so that less is opened than a rebuild
// would take: enough for all that xz -6 writes, which takes 96.
inline constexpr std::uint64_t kMostTableBytes = std::uint64_t{200} << 20;
inline constexpr std::uint64_t kMostOpenedTableBytes = std::uint64_t{100} << 20;
// Both by ContainerLimits::memory_bytes, for which they are the same at the top. It is halved for each level
// further down, so that streams in streams take no more than twice as much as one.
constexpr std::size_t most_encoded_bytes(std::size_t memory_bytes) {
  return std::min(kMostEncodedBytes, 8 * memory_bytes);
}
constexpr std::uint64_t most_table_bytes(std::size_t memory_bytes) {
  return std::min(kMostOpenedTableBytes, std::uint64_t{25} * memory_bytes / 2);
}
// Zeros between streams; what follows more of them is not part of the same content.
inline constexpr std::size_t kMostPaddingBytes = 64U << 10;

}  // namespace kin::formats::xz
