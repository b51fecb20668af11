// Parity of a repository: which packs have it, and making it for those that have none.
//
// Packs are taken together in sets, one parity file for each: as large as memory allows, so that a whole pack
// is a small part of its set. A new set takes in those that are no larger than what it has, and all as long
// as they are small; so each pack is read again only as often as the repository doubles, and a backup of
// little does not leave a set of its own.
//
// A set that is made anew is durable before the old one goes. What is interrupted leaves packs that have
// parity twice, or none until the next time.
#pragma once

#include "store/parity_file.h"
#include "store/repository.h"

#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace kin::store {

struct ParityOptions {
  unsigned percent = 0;  // 0: none is made, and what there is goes
  // Reads all parity there is: what is damaged, or was made with another percentage, is made anew.
  bool check_all = false;
  // First the packs that most deltas of others lean on; else as they come.
  bool most_needed_first = false;
  // Packs that will be removed: sets with them are made anew without them.
  std::set<ObjectId> leaving;
};

struct ParityObserver {
  std::function<void(const std::string& text)> on_found;  // what is damaged
  std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> on_progress;
};

struct ParityUpdate {
  std::uint64_t packs = 0, pack_bytes = 0;  // that have new parity
  std::uint64_t files = 0, file_bytes = 0;  // of it
  std::uint64_t removed = 0;                // files
  std::set<ObjectId> unprotected;           // packs that are damaged, and could not be healed
};

Result<ParityUpdate> update_parity(Repository& repository, const ParityOptions& options,
                                   const ParityObserver& observer, const std::stop_token& stop);

struct ParityStatus {
  std::uint64_t files = 0, file_bytes = 0, damaged_files = 0;
  std::uint64_t packs = 0, pack_bytes = 0;       // that have it
  std::uint64_t bare_packs = 0, bare_bytes = 0;  // that have none, and are not about to be removed
};
// `check_all`: by reading all of each file, not only its header. Tells which are damaged.
Result<ParityStatus> parity_status(Repository& repository, bool check_all,
                                   const std::function<void(const Error&)>& on_damage,
                                   const std::stop_token& stop);

}  // namespace kin::store
