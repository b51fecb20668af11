// ParityHeader: which packs a parity file is of, and how their bytes are laid out in stripes.
//
// The packs lie one behind the other in sectors, the last of each filled up with zeros. Sector i of them has
// position i / stripes in stripe i % stripes: what is lost in a row hits each stripe once before it hits one
// twice. Most parity is of these stripes. The rest is of diagonals, which take the same positions of other
// stripes: it helps out a stripe that by chance was hit too often, and after it the next.
#pragma once

#include "lib/object/object_id.h"
#include "store/backend.h"
#include "store/config.h"

#include <array>
#include <vector>

namespace kin::store {

inline constexpr std::size_t kSectorChecksumBytes = 8;

// The two ways to put sectors together.
inline constexpr std::size_t kParityLayouts = 2;

struct ParityHeader {
  struct Pack {
    ObjectId id;
    std::uint64_t size = 0;
    bool operator==(const Pack&) const = default;
  };

  unsigned percent = 0;                              // that was asked for
  std::uint32_t sector_bytes = 0;                    // a power of two, 64 to 4096
  std::uint32_t stripes = 0;                         // and as many diagonals
  std::uint32_t positions = 0;                       // of a stripe; the last may be empty
  std::array<std::uint32_t, kParityLayouts> rows{};  // parity sectors of each stripe, and of each diagonal
  std::vector<Pack> packs;

  std::uint64_t sectors_of(std::uint64_t bytes) const { return (bytes + sector_bytes - 1) / sector_bytes; }
  std::uint64_t data_sectors() const;
  std::uint64_t parity_sectors() const { return std::uint64_t{stripes} * (rows[0] + rows[1]); }
  std::uint64_t data_bytes() const;
  // In the file, with the checksums of all sectors.
  std::uint64_t stored_bytes() const;

  // Of data sectors.
  unsigned position_of(std::uint64_t sector) const { return static_cast<unsigned>(sector / stripes); }
  std::uint32_t stripe_of(std::size_t layout, std::uint64_t sector) const {
    return static_cast<std::uint32_t>((sector % stripes + (layout == 0 ? 0 : sector / stripes)) % stripes);
  }
  // Which of the parity sectors it is, as they lie in the file.
  std::uint64_t parity_at(std::size_t layout, std::uint32_t stripe, unsigned row) const {
    return std::uint64_t{stripes} * ((layout == 0 ? 0 : rows[0]) + row) + stripe;
  }

  bool operator==(const ParityHeader&) const = default;
};

// With `percent` of the packs' bytes as parity. There is a pack, each has a byte or more, and none comes
// twice.
ParityHeader plan_parity(std::vector<ParityHeader::Pack> packs, unsigned percent);

Bytes encode_parity_header(const ParityHeader& header);
Result<ParityHeader> decode_parity_header(ByteView bytes);

}  // namespace kin::store
