// Damage: harms a repository on purpose, so that people can try what check, repair and restore make of it,
// and we can. The same seed does the same to the same files.
#pragma once

#include "store/backend.h"

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace kin::store {

enum class DamageKind {
  flip,      // one bit
  zero,      // some bytes become zero, as of a sector that is lost
  swap,      // two stretches change places
  cut,       // some bytes in the midst are missing, and the rest moves up
  truncate,  // the end is missing
  drop,      // the whole file is missing
};
std::optional<DamageKind> parse_damage_kind(std::string_view name);
std::string_view name_of(DamageKind kind);

struct Damaged {
  FileName file;
  DamageKind kind = DamageKind::flip;
  std::uint64_t offset = 0, bytes = 0;  // what is not as it was; of swap the first of the two stretches
};

class Damager {
 public:
  Damager(Backend& backend, std::uint64_t seed) : backend_(backend), random_(seed) {}

  // One more, to a file of these kinds, each byte of which is as likely to be hit. Never one that it has
  // dropped. not_found if there is none that can be harmed so.
  Result<Damaged> harm(const std::vector<FileKind>& files, DamageKind kind);

 private:
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
  Result<FileInfo> choose(const std::vector<FileKind>& files, std::uint64_t least_bytes, FileKind& kind);

  Backend& backend_;
  std::mt19937_64 random_;
};

}  // namespace kin::store
