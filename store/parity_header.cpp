#include "store/parity_header.h"

#include "lib/base/check.h"
#include "lib/base/wire.h"
#include "store/reed_solomon.h"

#include <algorithm>
#include <bit>
#include <set>

namespace kin::store {
namespace {

constexpr std::uint8_t kParityVersion = 1;
constexpr std::uint32_t kLeastSectorBytes = 64;    // ISA-L wants no less
constexpr std::uint32_t kUsualSectorBytes = 1024;  // damage of 4 KiB hits five
constexpr std::uint32_t kMostSectorBytes = 4096;
// With smaller sectors there are this many of them, as far as that goes.
constexpr std::uint64_t kEnoughSectors = 4096;
// Diagonals are worth their parity where a stripe has few sectors in common with each.
constexpr std::uint32_t kLeastStripesForDiagonals = 8;
constexpr unsigned kDiagonalPart = 6;  // of the parity: one in six
constexpr std::uint64_t kMostParityFileBytes = std::uint64_t{1} << 30;

std::uint32_t percent_of(std::uint64_t number, unsigned percent) {
  return static_cast<std::uint32_t>((number * percent + 99) / 100);
}

}  // namespace

std::uint64_t ParityHeader::data_sectors() const {
  std::uint64_t out = 0;
  for (const Pack& pack : packs) out += sectors_of(pack.size);
  return out;
}

std::uint64_t ParityHeader::data_bytes() const {
  std::uint64_t out = 0;
  for (const Pack& pack : packs) out += pack.size;
  return out;
}

std::uint64_t ParityHeader::stored_bytes() const {
  return kSectorChecksumBytes * (data_sectors() + parity_sectors()) + parity_sectors() * sector_bytes;
}

ParityHeader plan_parity(std::vector<ParityHeader::Pack> packs, unsigned percent) {
  std::set<ObjectId> names;
  for (const ParityHeader::Pack& pack : packs) KIN_CHECK(names.insert(pack.id).second && pack.size > 0);
  ParityHeader out;
  out.percent = percent;
  out.packs = std::move(packs);
  out.sector_bytes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      std::bit_floor(out.data_bytes() / kEnoughSectors), kLeastSectorBytes, kUsualSectorBytes));
  // The longest stripes that the field allows: the longer, the less chance decides.
  std::uint32_t most = ReedSolomon::kMost - 2;
  while (most + percent_of(most, percent) > ReedSolomon::kMost) --most;
  const std::uint64_t sectors = out.data_sectors();
  out.stripes = static_cast<std::uint32_t>((sectors + most - 1) / most);
  out.positions = static_cast<std::uint32_t>((sectors + out.stripes - 1) / out.stripes);
  const std::uint32_t rows = std::max<std::uint32_t>(2, percent_of(out.positions, percent));
  out.rows[1] = out.stripes < kLeastStripesForDiagonals ? 0 : rows / kDiagonalPart;
  out.rows[0] = rows - out.rows[1];
  return out;
}

Bytes encode_parity_header(const ParityHeader& header) {
  WireWriter out;
  out.u8(kParityVersion);
  out.varint(header.percent);
  out.varint(header.sector_bytes);
  out.varint(header.stripes);
  out.varint(header.positions);
  for (const std::uint32_t rows : header.rows) out.varint(rows);
  out.varint(header.packs.size());
  for (const ParityHeader::Pack& pack : header.packs) {
    out.raw(pack.id.bytes);
    out.varint(pack.size);
  }
  return out.take();
}

Result<ParityHeader> decode_parity_header(ByteView bytes) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kParityVersion)
    return Error(ErrorCode::unsupported, "the parity was made by a newer kin");
  if (in.u8() != kParityVersion) in.fail();
  ParityHeader out;
  out.percent = static_cast<unsigned>(in.varint_up_to(kMostParityPercent));
  out.sector_bytes = static_cast<std::uint32_t>(in.varint_up_to(kMostSectorBytes));
  out.stripes = static_cast<std::uint32_t>(in.varint_up_to(kMostParityFileBytes / kLeastSectorBytes));
  out.positions = static_cast<std::uint32_t>(in.varint_up_to(ReedSolomon::kMost));
  for (std::uint32_t& rows : out.rows) rows = static_cast<std::uint32_t>(in.varint_up_to(ReedSolomon::kMost));
  std::set<ObjectId> known;
  for (std::size_t left = in.count(33); left > 0 && !in.failed(); --left) {
    ParityHeader::Pack pack{{in.array<32>()}, in.varint_up_to(kMostParityFileBytes)};
    if (pack.size == 0 || !known.insert(pack.id).second) in.fail();
    out.packs.push_back(pack);
  }
  KIN_TRY(in.finish("parity"));
  const bool fits = out.sector_bytes >= kLeastSectorBytes && std::has_single_bit(out.sector_bytes) &&
                    out.stripes > 0 && out.positions > 0 && out.rows[0] > 0 &&
                    out.positions + out.rows[0] + out.rows[1] <= ReedSolomon::kMost &&
                    out.stored_bytes() <= kMostParityFileBytes;
  // Every position is taken, but for some of the last.
  if (!fits || out.data_sectors() > std::uint64_t{out.stripes} * out.positions ||
      out.data_sectors() <= std::uint64_t{out.stripes} * (out.positions - 1))
    return Error(ErrorCode::corrupt, "parity: its stripes cannot be");
  return out;
}

}  // namespace kin::store
