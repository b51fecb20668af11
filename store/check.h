// Check: is everything there that a snapshot names, and does it say what it said?
//
// Structure: every key and index segment reads; every pack that is listed is there with the right size; every
// snapshot reads; every tree, list and content object that it reaches is indexed (trees and lists are decoded
// on the way), and so are its bases, in packs that are there. Whatever stands in a file's place and is none
// is a problem. Data, in addition, for the packs chosen: the file's hash is its name; every block opens,
// decodes and gives objects with the right ids; every indexed block of the pack is really there; and if all
// packs are chosen, every container is put together again and compared. Whichever it is, the files that need
// what is lost are named. A pack that parity can heal is healed, and is as if it had never been damaged, if
// the repository was opened so. Parity itself is looked at as packs are: its names and sizes, or all of it.
// Bounded memory: ids seen are kept as 16 bytes each.
//
// When each pack was last found sound is noted in the local cache, so that a check that has only so much time
// reads those first that were longest not read. What one machine reads well another may not, so that it is no
// business of the repository.
#pragma once

#include "lib/container/container_format.h"
#include "store/chain_check.h"
#include "store/repository.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace kin::store {

// Which packs to read whole.
struct ReadSubset {
  enum class Kind { none, all, nth, percent, bytes, oldest };
  Kind kind = Kind::none;
  std::uint64_t n = 0, of = 0;  // nth
  double percent = 0;           // percent, chosen at random
  std::uint64_t bytes = 0;      // bytes, chosen at random
  // oldest: those that were never or longest ago found sound, for as long as this; one at least.
  std::uint64_t seconds = 0;
};
// "2/5", "5%", "2G"
Result<ReadSubset> parse_read_subset(const std::string& text);
// "90s", "30m", "1h30m", "2d": seconds, more than none.
Result<std::uint64_t> parse_duration(std::string_view text);

struct CheckObserver {
  std::function<void(const std::string& problem)> on_problem;
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> on_progress;
  // Told of what is no problem any more, but may surprise.
  std::function<void(const std::string& note)> on_note = [](const std::string&) {};
};

struct CheckStats {
  std::uint64_t snapshots = 0, trees = 0, objects = 0, packs = 0, packs_read = 0, bytes_read = 0;
  std::uint64_t containers = 0;              // put together again and compared
  std::uint64_t unindexed_packs = 0;         // no problem: an unfinished backup left them
  std::uint64_t given_up_packs = 0;          // likewise: for a prune to remove
  std::uint64_t healed_packs = 0;            // from parity, and no problem any more
  std::uint64_t bare_packs = 0;              // without parity, where packs should have it
  std::uint64_t lost_forgotten = 0;          // snapshots: cannot be read, and a prune removes them
  std::uint64_t packs_to_read = 0;           // that were chosen
  std::uint64_t packs_never_read = 0;        // of these, by this machine
  std::optional<std::int64_t> oldest_check;  // of these, in seconds since 1970
  ChainCheck::Found chains;
  std::uint64_t problems = 0;
};

Result<CheckStats> check(Repository& repository, const Formats& formats, const ReadSubset& subset,
                         const CheckObserver& observer, std::stop_token stop);

}  // namespace kin::store
