// ChainCheck: can an object be decoded? As far as the index tells, and the damage that was found before: its
// block, that of its base, and so on. No content is read. One thread at a time.
#pragma once

#include "store/repository.h"
#include "store/short_id.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kin::store {

class ChainCheck {
 public:
  explicit ChainCheck(Repository& repository) : repository_(repository) {}

  // Damage has to be told before the objects that it hits are asked for.
  // A pack that ends after this many bytes, 0 if there is none that can be read.
  void add_damaged_pack(const ObjectId& pack, const std::string& what, std::uint64_t size) {
    packs_.insert_or_assign(pack, DamagedPack{what, size});
  }
  void add_damaged_block(const ObjectId& pack, std::uint64_t offset) { blocks_.emplace(pack, offset); }

  // What is in the way of decoding the object that is there; nothing if it is sound. Each base is looked up
  // once, however many objects lean on it.
  Result<std::optional<std::string>> find_fault(const Location& there);

  struct Found {
    unsigned longest = 0;                   // deltas, of chains without a fault
    std::uint64_t loops = 0, too_long = 0;  // objects whose chain is so
    std::uint64_t missing_bases = 0;        // that objects which were asked for lean on
  };
  const Found& found() const { return found_; }

 private:
  struct DamagedPack {
    std::string what;
    std::uint64_t size = 0;
  };

  std::optional<std::string> damage_at(const Location& location) const;

  Repository& repository_;
  std::unordered_map<ObjectId, DamagedPack, ObjectIdHash> packs_;
  std::set<std::pair<ObjectId, std::uint64_t>> blocks_;
  std::unordered_map<ShortId, std::uint8_t, ShortIdHash> sound_bases_;  // how many deltas each is made of
  std::unordered_set<ShortId, ShortIdHash> missing_;
  Found found_;
};

}  // namespace kin::store
