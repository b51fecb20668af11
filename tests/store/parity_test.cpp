#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "store/config.h"
#include "store/damage.h"
#include "store/parity_heal.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

namespace kin::store {
namespace {

using namespace kin::testing;

// Packs in memory, of which parity knows nothing but the bytes; and one parity file of them.
class Packs {
 public:
  Packs(std::size_t count, std::size_t most_bytes, unsigned percent, Encryption encryption = Encryption::none)
      : backend_(make_memory_backend()), sealer_(encryption, key_) {
    Random random(count);
    std::vector<ParityHeader::Pack> packs;
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes bytes = random_bytes(i + 1, most_bytes / 4 + random.below(most_bytes * 3 / 4));
      const FileName name{FileKind::pack, hex(hash(bytes))};
      require_ok(backend_->put(name, bytes));
      whole_[name] = bytes;
      bytes_ += bytes.size();
      packs.push_back({*ObjectId::from_hex(name.name), bytes.size()});
    }
    header_ = plan_parity(packs, percent);
    const WrittenParity written = value_of(write_parity(place(), header_, [] {}, {}));
    REQUIRE(written.file);
    parity_ = {FileKind::parity, written.file->name};
    parity_bytes_ = value_of(backend_->get(parity_));
    CHECK(written.file->size == parity_bytes_.size());
    CHECK(hex(hash(parity_bytes_)) == parity_.name);
  }

  ParityPlace place() { return {*backend_, sealer_, key_}; }
  Backend& backend() { return *backend_; }
  const ParityHeader& header() const { return header_; }
  const FileName& parity() const { return parity_; }
  const Bytes& parity_bytes() const { return parity_bytes_; }
  const std::map<FileName, Bytes>& whole() const { return whole_; }
  std::uint64_t bytes() const { return bytes_; }

  Result<void> heal() {
    KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::parity));
    for (const FileInfo& file : files) {
      KIN_TRY_ASSIGN(const ParityFile opened, ParityFile::open(place(), file));
      KIN_TRY(heal_from_parity(
          place(), opened, [](const ObjectId&) { return true; },
          [&](const ObjectId& pack, const Bytes& bytes) {
            return backend_->put({FileKind::pack, pack.hex()}, bytes);
          },
          {}));
    }
    return {};
  }

  // Those that are not as they were.
  std::size_t count_damaged() {
    return static_cast<std::size_t>(std::count_if(whole_.begin(), whole_.end(), [&](const auto& file) {
      const auto now = backend_->get(file.first);
      return !now || *now != file.second;
    }));
  }

  void restore() {
    for (const auto& [name, bytes] : whole_) require_ok(backend_->put(name, bytes));
    require_ok(backend_->put(parity_, parity_bytes_));
  }

 private:
  const Key key_ = parity_key(Key{1, 2, 3});
  std::unique_ptr<Backend> backend_;
  Sealer sealer_;
  std::map<FileName, Bytes> whole_;
  std::uint64_t bytes_ = 0;
  ParityHeader header_;
  FileName parity_;
  Bytes parity_bytes_;
};

// Of a damage to disk, whole sectors are gone: a flipped bit counts as one.
std::uint64_t sector_cost(const Damaged& damaged) {
  if (damaged.kind == DamageKind::flip) return 4096;
  return damaged.kind == DamageKind::swap ? 2 * damaged.bytes : damaged.bytes;
}

constexpr DamageKind kDamageKinds[] = {DamageKind::flip, DamageKind::zero,     DamageKind::swap,
                                       DamageKind::cut,  DamageKind::truncate, DamageKind::drop};

}  // namespace

TEST_CASE("with 5 % of parity, 200 damages of up to 2 % of the packs are healed", "[parity]") {
  Packs packs(150, 48 << 10, 5);
  const std::uint64_t most = packs.bytes() / 50;
  std::uint64_t all = 0, harms = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Damager damager(packs.backend(), seed);
    // One in four does as much harm as it may, with damages of all kinds.
    const std::uint64_t limit = seed % 4 == 3 ? most : 1 + Random(seed).below(most);
    std::uint64_t done = 0;
    for (std::uint64_t i = 0; done < limit; ++i) {
      const DamageKind kind = kDamageKinds[seed % 4 == 3 ? (seed + i) % 6 : seed % 6];
      const Damaged damaged = value_of(damager.harm({FileKind::pack}, kind));
      if (done + sector_cost(damaged) > most) {
        // Beyond what was promised: as if it had not been.
        require_ok(packs.backend().put(damaged.file, packs.whole().at(damaged.file)));
        break;
      }
      done += sector_cost(damaged);
      ++harms;
    }
    all += done;
    INFO("seed " << seed << ": " << done << " bytes");
    require_ok(packs.heal());
    CHECK(packs.count_damaged() == 0);
    packs.restore();
  }
  CHECK(harms > 2000);
  CHECK(all > 200 * most / 4);
}

TEST_CASE("the parity takes what was asked for, and little more", "[parity]") {
  const unsigned percent = GENERATE(1, 5, 10, 50, 100);
  Packs packs(20, 400 << 10, percent);
  const double share = static_cast<double>(packs.parity_bytes().size()) / static_cast<double>(packs.bytes());
  INFO(share);
  CHECK(share > percent / 100.0);
  CHECK(share < percent / 100.0 * 1.05 + 0.02);
}

TEST_CASE("packs that are missing whole come back, as many as there is parity for", "[parity]") {
  Packs packs(20, 4 << 10, 20, Encryption::xchacha20_poly1305);
  std::size_t gone = 0;
  std::uint64_t sectors = 0;
  for (const ParityHeader::Pack& pack : packs.header().packs) {
    sectors += packs.header().sectors_of(pack.size);
    if (sectors / packs.header().stripes + 1 > packs.header().rows[0]) break;
    require_ok(packs.backend().remove({FileKind::pack, pack.id.hex()}));
    ++gone;
  }
  CHECK(gone >= 2);
  CHECK(packs.count_damaged() == gone);
  require_ok(packs.heal());
  CHECK(packs.count_damaged() == 0);
  // Of more it gives nothing back, rather than something wrong.
  for (std::size_t i = 0; i < 2 * gone + 2; ++i)
    require_ok(packs.backend().remove({FileKind::pack, packs.header().packs[i].id.hex()}));
  require_ok(packs.heal());
  CHECK(packs.count_damaged() == 2 * gone + 2);
}

TEST_CASE("damage to the parity file leaves it of use", "[parity]") {
  Packs packs(30, 16 << 10, 10);
  const auto pack = packs.whole().begin();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const DamageKind kind = kDamageKinds[seed % 4];  // not the end, nor the whole file
    Damager damager(packs.backend(), seed);
    const Damaged damaged = value_of(damager.harm({FileKind::parity}, kind));
    Bytes bytes = pack->second;
    std::fill_n(bytes.begin() + 1000, 300, 0);
    require_ok(packs.backend().put(pack->first, bytes));
    INFO("seed " << seed << ": " << name_of(kind) << " of " << damaged.bytes << " at " << damaged.offset
                 << " of " << packs.parity_bytes().size());
    require_ok(packs.heal());
    CHECK(packs.count_damaged() == 0);
    packs.restore();
  }
}

TEST_CASE("of a small parity file, each damage is survived or told", "[parity]") {
  Packs packs(2, 900, 10);
  const FileName pack = packs.whole().begin()->first;
  std::size_t healed = 0, told = 0;
  for_each_damage(packs.parity_bytes(), [&](const Bytes& damaged, const std::string& describe) {
    require_ok(packs.backend().put(packs.parity(), damaged));
    require_ok(packs.backend().remove(pack));
    Bytes bytes = packs.whole().at(pack);
    bytes[100] ^= 1;
    require_ok(packs.backend().put(pack, bytes));
    const auto done = packs.heal();
    const auto now = value_of(packs.backend().get(pack));
    const bool is_whole = now == packs.whole().at(pack);
    INFO(describe);
    // Never something else than there was, or than was meant to be there.
    CHECK((is_whole || now == bytes));
    if (!done) CHECK(is_damage(done.error()));
    ++(is_whole ? healed : told);
  });
  CHECK(healed > 3 * told);
  packs.restore();
}

TEST_CASE("a damaged pack gets no parity", "[parity]") {
  Packs packs(3, 2000, 10);
  const auto [name, whole] = *packs.whole().begin();
  Bytes bytes = whole;
  bytes[5] ^= 1;
  require_ok(packs.backend().put(name, bytes));
  const WrittenParity written = value_of(write_parity(packs.place(), packs.header(), [] {}, {}));
  CHECK_FALSE(written.file);
  CHECK(written.unreadable == std::set{*ObjectId::from_hex(name.name)});
}

TEST_CASE("a parity header reads back as it was, and no other bytes do", "[parity]") {
  const ParityHeader header = plan_parity({{{Digest{1}}, 100'000}, {{Digest{2}}, 5}}, 7);
  const Bytes bytes = encode_parity_header(header);
  CHECK(value_of(decode_parity_header(bytes)) == header);
  for_each_cut(bytes, [](const Bytes& damaged, const std::string& describe) {
    INFO(describe);
    CHECK_FALSE(decode_parity_header(damaged));
  });
  // A header that was forged must not lead anyone beyond its sectors.
  for_each_flip(bytes, [](const Bytes& damaged, const std::string& describe) {
    INFO(describe);
    const auto other = decode_parity_header(damaged);
    if (!other) return;
    CHECK(other->position_of(other->data_sectors() - 1) < other->positions);
    CHECK(other->positions + other->rows[0] + other->rows[1] <= 256);
  });
}

TEST_CASE("a forged parity header takes no more memory than its file has bytes for", "[parity]") {
  ParityHeader header;
  header.percent = 5;
  header.sector_bytes = 64;
  header.stripes = 1 << 24;
  header.positions = 254;
  header.rows = {1, 0};
  for (std::uint8_t i = 0; i < 254; ++i) header.packs.push_back({{Digest{i}}, 1 << 30});
  CHECK(header.parity_sectors() * header.sector_bytes == 1 << 30);
  CHECK_FALSE(decode_parity_header(encode_parity_header(header)));
  // One that could be: the largest with which kin makes sets.
  header = plan_parity({{{Digest{1}}, 1 << 30}, {{Digest{2}}, (1 << 30) - 1}}, 1);
  CHECK(value_of(decode_parity_header(encode_parity_header(header))) == header);
  // And what is left of a file.
  Packs packs(10, 40'000, 20);
  for (const std::size_t part : {1U, 2U, 5U, 6U}) {
    Bytes bytes = packs.parity_bytes();
    bytes.resize(bytes.size() / part);
    require_ok(packs.backend().put(packs.parity(), bytes));
    const auto opened = ParityFile::open(packs.place(), {packs.parity().name, bytes.size()});
    CHECK(opened.has_value() == (part < 4));
  }
}

}  // namespace kin::store
