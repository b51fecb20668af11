#include "store/parity_heal.h"

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "store/reed_solomon.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_map>

namespace kin::store {
namespace {

// How many places are tried for what has moved to an unknown one: some tenths of a second for each pack.
constexpr unsigned kMostPlacesTried = 1 << 18;

class Healer {
 public:
  Healer(const ParityPlace& place, const ParityFile& file, std::stop_token stop)
      : place_(place),
        file_(file),
        header_(file.header()),
        stop_(std::move(stop)),
        codes_{{{header_.positions, 0, header_.rows[0]},
                {header_.positions, header_.rows[0], header_.rows[1]}}} {}

  Result<std::set<ObjectId>> run(const std::function<bool(const ObjectId& pack)>& is_wanted,
                                 const TakePack& take);

 private:
  // Of a damaged pack: where its sectors are, by how much they have moved.
  struct Damaged {
    ParityHeader::Pack pack;
    std::uint64_t first_sector = 0;
    std::vector<std::optional<std::int64_t>> shifts;
  };

  Result<void> read_checksums();
  Result<void> read_parity();
  Result<void> read_packs();
  Result<Bytes> read_pack(const ParityHeader::Pack& pack);  // empty if it is missing
  void add_pack(const ParityHeader::Pack& pack, std::uint64_t first_sector, ByteView bytes);
  Result<void> search_pack(Damaged& damaged, ByteView bytes);
  // The sector as it was if it is found so much further on; filled up with zeros.
  std::optional<Bytes> find(const Damaged& damaged, std::size_t number, std::int64_t shift,
                            ByteView bytes) const;
  void add(std::uint64_t sector, ByteView bytes);
  bool is_right(std::uint64_t sector, ByteView bytes) const;
  void solve();
  bool solve(std::size_t layout, std::uint32_t stripe, const std::vector<std::uint64_t>& sectors);
  bool lacks_sectors(const Damaged& damaged) const;
  Result<std::optional<Bytes>> assemble(const Damaged& damaged);

  std::uint8_t* parity(std::size_t layout, std::uint32_t stripe, unsigned row) {
    return parity_.data() + header_.parity_at(layout, stripe, row) * header_.sector_bytes;
  }

  const ParityPlace& place_;
  const ParityFile& file_;
  const ParityHeader& header_;
  const std::stop_token stop_;
  std::array<ReedSolomon, kParityLayouts> codes_;
  std::array<Bytes, 2> checksums_;     // as they should lie, and as they lie behind a cut
  Bytes parity_;                       // less what was found of the packs
  std::vector<bool> parity_is_sound_;  // by sector
  std::vector<Damaged> damaged_;
  std::vector<std::uint64_t> lost_;                  // sectors
  std::unordered_map<std::uint64_t, Bytes> healed_;  // of these
};

bool Healer::is_right(std::uint64_t sector, ByteView bytes) const {
  const SectorChecksum here = sector_checksum(place_.key, bytes);
  const std::size_t at = static_cast<std::size_t>(sector) * here.size();
  return std::any_of(checksums_.begin(), checksums_.end(), [&](const Bytes& all) {
    return at + here.size() <= all.size() && equal(here, ByteView(all).subspan(at, here.size()));
  });
}

Result<void> Healer::read_checksums() {
  const std::uint64_t from = file_.checksums_offset(), size = file_.parity_offset() - from;
  KIN_TRY_ASSIGN(checksums_[0], file_.read(place_, from, size));
  const std::int64_t shift = file_.shift();
  if (shift == 0) return {};
  const std::int64_t moved = static_cast<std::int64_t>(from) + shift;
  const std::uint64_t missing = moved < 0 ? std::min(static_cast<std::uint64_t>(-moved), size) : 0;
  KIN_TRY_ASSIGN(
      const Bytes there,
      file_.read(place_, static_cast<std::uint64_t>(std::max<std::int64_t>(moved, 0)), size - missing));
  checksums_[1].resize(static_cast<std::size_t>(missing));
  append(checksums_[1], there);
  return {};
}

Result<void> Healer::read_parity() {
  const std::uint64_t from = file_.parity_offset(), count = header_.parity_sectors();
  const std::uint32_t sector_bytes = header_.sector_bytes;
  KIN_TRY_ASSIGN(parity_, file_.read(place_, from, count * sector_bytes));
  parity_.resize(static_cast<std::size_t>(count * sector_bytes));
  parity_is_sound_.resize(static_cast<std::size_t>(count));
  const std::uint64_t data = header_.data_sectors();
  const std::int64_t shift = file_.shift();
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = parity_.begin() + static_cast<std::ptrdiff_t>(i * sector_bytes);
    parity_is_sound_[i] = is_right(data + i, {at, sector_bytes});
    if (parity_is_sound_[i] || shift == 0) continue;
    const std::uint64_t moved = from + i * sector_bytes + static_cast<std::uint64_t>(shift);
    if (moved > file_.size()) continue;
    KIN_TRY_ASSIGN(const Bytes there, file_.read(place_, moved, sector_bytes));
    if (there.size() < sector_bytes || !is_right(data + i, there)) continue;
    std::copy(there.begin(), there.end(), at);
    parity_is_sound_[i] = true;
  }
  return {};
}

// It is linear: what is added a second time is out again.
void Healer::add(std::uint64_t sector, ByteView bytes) {
  for (std::size_t layout = 0; layout < kParityLayouts; ++layout) {
    std::array<std::uint8_t*, ReedSolomon::kMost> parities;
    for (unsigned row = 0; row < header_.rows[layout]; ++row)
      parities[row] = parity(layout, header_.stripe_of(layout, sector), row);
    codes_[layout].add(header_.position_of(sector), bytes, std::span(parities).first(header_.rows[layout]));
  }
}

Result<Bytes> Healer::read_pack(const ParityHeader::Pack& pack) {
  const FileName name{FileKind::pack, pack.id.hex()};
  auto bytes = place_.backend.get(name);
  if (bytes) return bytes;
  // What is no file may be put right as well.
  if (is_damage(bytes.error())) return Bytes();
  if (bytes.error().code() != ErrorCode::io) return std::move(bytes).error();
  return read_in_pieces(place_.backend, name, 0, static_cast<std::size_t>(pack.size));
}

void Healer::add_pack(const ParityHeader::Pack& pack, std::uint64_t first_sector, ByteView bytes) {
  const std::size_t sector_bytes = header_.sector_bytes;
  for (std::uint64_t i = 0; i < header_.sectors_of(pack.size); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * sector_bytes;
    const ByteView here = bytes.subspan(at, std::min(sector_bytes, bytes.size() - at));
    if (here.size() == sector_bytes) {
      add(first_sector + i, here);
      continue;
    }
    Bytes filled(here.begin(), here.end());
    filled.resize(sector_bytes);
    add(first_sector + i, filled);
  }
}

std::optional<Bytes> Healer::find(const Damaged& damaged, std::size_t number, std::int64_t shift,
                                  ByteView bytes) const {
  const std::uint64_t offset = std::uint64_t{number} * header_.sector_bytes;
  const std::uint64_t size = std::min<std::uint64_t>(header_.sector_bytes, damaged.pack.size - offset);
  const std::int64_t at = static_cast<std::int64_t>(offset) + shift;
  if (at < 0 || static_cast<std::uint64_t>(at) + size > bytes.size()) return std::nullopt;
  const ByteView here = bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  Bytes out(here.begin(), here.end());
  out.resize(header_.sector_bytes);
  if (!is_right(damaged.first_sector + number, out)) return std::nullopt;
  return out;
}

// A sector is where it was, or has moved as the one before, or as the end has; or else somewhere in between,
// if bytes are missing in several places.
Result<void> Healer::search_pack(Damaged& damaged, ByteView bytes) {
  const std::int64_t end_shift =
      static_cast<std::int64_t>(bytes.size()) - static_cast<std::int64_t>(damaged.pack.size);
  std::int64_t last_shift = 0;
  unsigned tries_left = kMostPlacesTried;
  damaged.shifts.resize(static_cast<std::size_t>(header_.sectors_of(damaged.pack.size)));
  for (std::size_t i = 0; i < damaged.shifts.size(); ++i) {
    if (stop_.stop_requested()) return interrupted();
    std::optional<Bytes> found;
    const auto try_it = [&](std::int64_t shift) {
      if (found || !(found = find(damaged, i, shift, bytes))) return;
      damaged.shifts[i] = last_shift = shift;
    };
    try_it(last_shift);
    try_it(0);
    try_it(end_shift);
    const std::int64_t step = end_shift < 0 ? -1 : 1;
    for (std::int64_t shift = step; !found && std::abs(shift) < std::abs(end_shift) && tries_left > 0;
         shift += step, --tries_left)
      try_it(shift);
    if (found)
      add(damaged.first_sector + i, *found);
    else
      lost_.push_back(damaged.first_sector + i);
  }
  return {};
}

Result<void> Healer::read_packs() {
  std::uint64_t sector = 0;
  for (const ParityHeader::Pack& pack : header_.packs) {
    if (stop_.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const Bytes bytes, read_pack(pack));
    if (bytes.size() == pack.size && hash(bytes) == pack.id.bytes) {
      add_pack(pack, sector, bytes);
    } else {
      damaged_.push_back({pack, sector, {}});
      KIN_TRY(search_pack(damaged_.back(), bytes));
    }
    sector += header_.sectors_of(pack.size);
  }
  return {};
}

// Whether the stripe lacks none of these any more.
bool Healer::solve(std::size_t layout, std::uint32_t stripe, const std::vector<std::uint64_t>& sectors) {
  std::vector<unsigned> positions, rows;
  std::vector<std::uint8_t*> parities;
  for (const std::uint64_t sector : sectors) positions.push_back(header_.position_of(sector));
  for (unsigned row = 0; row < header_.rows[layout] && rows.size() < positions.size(); ++row) {
    if (!parity_is_sound_[header_.parity_at(layout, stripe, row)]) continue;
    rows.push_back((layout == 0 ? 0 : header_.rows[0]) + row);
    parities.push_back(parity(layout, stripe, row));
  }
  if (rows.size() < positions.size()) return false;
  std::vector<Bytes> solved = ReedSolomon::solve(positions, rows, parities, header_.sector_bytes);
  for (std::size_t i = 0; i < sectors.size(); ++i) {
    add(sectors[i], solved[i]);
    healed_.emplace(sectors[i], std::move(solved[i]));
  }
  return true;
}

// What one stripe gives back is no longer missing in others.
void Healer::solve() {
  for (bool any = true; any && healed_.size() < lost_.size();) {
    any = false;
    for (std::size_t layout = 0; layout < kParityLayouts; ++layout) {
      std::map<std::uint32_t, std::vector<std::uint64_t>> lacking;
      for (const std::uint64_t sector : lost_)
        if (!healed_.contains(sector)) lacking[header_.stripe_of(layout, sector)].push_back(sector);
      for (const auto& [stripe, sectors] : lacking) any = solve(layout, stripe, sectors) || any;
    }
  }
}

bool Healer::lacks_sectors(const Damaged& damaged) const {
  for (std::size_t i = 0; i < damaged.shifts.size(); ++i)
    if (!damaged.shifts[i] && !healed_.contains(damaged.first_sector + i)) return true;
  return false;
}

// None if some of it is lost for good.
Result<std::optional<Bytes>> Healer::assemble(const Damaged& damaged) {
  const auto none = std::optional<Bytes>();
  KIN_TRY_ASSIGN(const Bytes bytes, read_pack(damaged.pack));
  Bytes out;
  out.reserve(static_cast<std::size_t>(damaged.pack.size));
  for (std::size_t i = 0; i < damaged.shifts.size(); ++i) {
    std::optional<Bytes> found;
    if (!damaged.shifts[i])
      found = std::move(healed_.extract(damaged.first_sector + i).mapped());
    else
      found = find(damaged, i, *damaged.shifts[i], bytes);
    if (!found) return none;
    append(out, *found);
  }
  out.resize(static_cast<std::size_t>(damaged.pack.size));
  if (hash(out) != damaged.pack.id.bytes) return none;
  return std::optional(std::move(out));
}

Result<std::set<ObjectId>> Healer::run(const std::function<bool(const ObjectId& pack)>& is_wanted,
                                       const TakePack& take) {
  std::set<ObjectId> lost;
  KIN_TRY(read_checksums());
  KIN_TRY(read_parity());
  KIN_TRY(read_packs());
  solve();
  for (const Damaged& damaged : damaged_) {
    if (lacks_sectors(damaged)) {
      lost.insert(damaged.pack.id);
      continue;
    }
    if (!is_wanted(damaged.pack.id)) continue;
    KIN_TRY_ASSIGN(std::optional<Bytes> bytes, assemble(damaged));
    if (bytes)
      KIN_TRY(take(damaged.pack.id, *std::move(bytes)));
    else
      lost.insert(damaged.pack.id);
  }
  return lost;
}

}  // namespace

Result<std::set<ObjectId>> heal_from_parity(const ParityPlace& place, const ParityFile& file,
                                            const std::function<bool(const ObjectId& pack)>& is_wanted,
                                            const TakePack& take, const std::stop_token& stop) {
  return Healer(place, file, stop).run(is_wanted, take);
}

}  // namespace kin::store
