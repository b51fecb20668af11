// Rebase: what nothing needs but those that lean on it goes, where these take less on other bases.
//
// A base that no snapshot names stays for its deltas. Each of those could lean on what the base leans on
// itself, on the next best kin, or on nothing. If the best of that costs less than the base takes, they are
// written so, and the base is needless: prune does the rest.
//
// A delta's new base never lies deeper than the old one did. So no chain gets longer, and none closes to a
// circle, in whatever order the deltas are taken.
#pragma once

#include "store/block_use.h"

#include <functional>
#include <stop_token>

namespace kin::store {

struct RebaseReport {
  std::uint64_t kept = 0, kept_bytes = 0;          // blocks that are there for others alone, before
  std::uint64_t freed = 0, freed_bytes = 0;        // of them
  std::uint64_t written = 0;                       // blocks, in place of as many
  std::uint64_t old_bytes = 0, written_bytes = 0;  // what these took, and take
};

class Rebase {
 public:
  // `use`: with its places chosen.
  Rebase(Repository& repository, BlockUse& use,
         std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> on_progress)
      : repository_(repository), use_(use), on_progress_(std::move(on_progress)) {}

  // Nothing is written. Reads and encodes each delta a few times.
  Result<void> plan(const std::stop_token& stop);
  // Writes what was planned, and flushes; the old places are forsaken, and new ones are to be chosen.
  Result<void> carry_out(const std::stop_token& stop);
  const RebaseReport& report() const { return report_; }
  const std::set<ObjectId>& freed_packs() const { return freed_packs_; }  // that these bases are in

 private:
  struct Base {
    BlockUse::Standing at;
    std::set<BlockRef> leaning;
  };
  struct Choice {
    std::optional<ObjectId> base;
    std::uint64_t bytes = 0;  // as it would be stored
  };
  struct Delta {
    BlockHeader header;
    Bytes content;
  };

  Result<void> try_to_free(const BlockRef& base, const std::stop_token& stop);
  Base* find_base(const std::optional<ObjectId>& id);
  Result<Delta> load(const BlockRef& at);
  Result<Choice> best_choice(const BlockRef& at, const Base& base, const std::optional<ObjectId>& below);
  Result<std::vector<ObjectId>> bases_for(const Delta& delta, const BlockRef& at, const Base& base,
                                          const std::optional<ObjectId>& below);
  // As it is stored: with this base, or with none.
  EncodedBlock encode(const Delta& delta, const std::optional<ObjectId>& base, ByteView base_content);
  std::uint64_t bytes_of(const BlockRef& at) const;

  Repository& repository_;
  BlockUse& use_;
  const std::function<void(std::string_view, std::uint64_t, std::uint64_t)> on_progress_;
  BlockEncoder encoder_{Effort::normal()};
  std::map<BlockRef, Base> bases_;      // that are still needed, by nothing but what leans on them
  std::map<BlockRef, Choice> choices_;  // for deltas
  std::set<ObjectId> freed_packs_;
  RebaseReport report_;
};

}  // namespace kin::store
