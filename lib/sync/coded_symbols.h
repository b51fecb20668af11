// Coded symbols: how two ends find out in which ids their sets differ, at a cost of the difference and not of
// the sets. Either end can make as many symbols of its set as it likes, one after the other, and each has the
// sum of some of its ids. The other end takes its own symbols away from them: what both have cancels out.
// With about 1.4 symbols per id that only one end has, all of those are known (Yang, Gilad, Alizadeh:
// Practical Rateless Set Reconciliation, arXiv 2402.02668).
#pragma once

#include "lib/base/wire.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace kin::sync {

// A keyed hash of an item's state: equal sets have equal ids. None is twice in a set.
using ShortId = std::uint64_t;

struct CodedSymbol {
  ShortId sum = 0;          // XOR of the ids
  std::uint32_t check = 0;  // XOR of a keyed hash of each
  std::int64_t count = 0;

  bool operator==(const CodedSymbol&) const = default;
};

// The symbols that an id is in: number 0, and then ever fewer of them. Those of one key and id are the same
// on all machines.
class SymbolWalk {
 public:
  SymbolWalk(std::uint64_t key, ShortId id);

  std::size_t index() const { return index_; }
  void advance();

 private:
  std::uint64_t state_;
  std::size_t index_ = 0;
};

// Symbols `first` to `first + count` of a set, an id at a time: a set of millions is never in memory.
class SymbolMaker {
 public:
  SymbolMaker(std::uint64_t key, std::size_t first, std::size_t count)
      : key_(key), first_(first), symbols_(count) {}

  void add(ShortId id);
  const std::vector<CodedSymbol>& symbols() const { return symbols_; }

 private:
  std::uint64_t key_;
  std::size_t first_;
  std::vector<CodedSymbol> symbols_;
};

// Takes symbols of the other set and of ours, in order, and tells the difference once it can. The other end's
// may be anything: the worst that they do is a wrong difference, which a digest of the sets has to show. One
// thread at a time.
class SymbolDecoder {
 public:
  explicit SymbolDecoder(std::uint64_t key) : key_(key) {}

  // The next ones, as many of the one as of the other.
  void add(std::span<const CodedSymbol> theirs, std::span<const CodedSymbol> ours);

  std::size_t symbols() const { return cells_.size(); }
  // All symbols so far are explained, and there is at least one.
  bool done() const { return !failed_ && !cells_.empty() && unexplained_ == 0; }
  // The symbols contradict each other, so that more of them will not help; another key may.
  bool failed() const { return failed_; }

  // Once done; no id is there twice.
  const std::vector<ShortId>& only_theirs() const { return only_theirs_; }
  const std::vector<ShortId>& only_ours() const { return only_ours_; }

  // How many symbols more are likely to be enough; 0 if done. It is from a variance, so with 48 symbols its
  // standard error is a fifth. Of symbols that are lies it may be anything up to 2^40.
  std::size_t likely_needed() const;

 private:
  struct Found {
    SymbolWalk walk;  // at the first symbol that is not there yet
    CodedSymbol symbol;
  };

  void take_away(const CodedSymbol& found, std::size_t index);
  void take_apart();
  bool is_single(const CodedSymbol& cell) const;
  double likely_differences() const;

  std::uint64_t key_;
  std::vector<CodedSymbol> cells_;  // what is not explained yet
  std::size_t unexplained_ = 0;     // cells that are not zero
  std::vector<std::size_t> to_look_at_;
  std::vector<Found> found_;
  std::set<ShortId> found_ids_;
  std::vector<ShortId> only_theirs_, only_ours_;
  bool failed_ = false;
  double first_count_ = 0;  // theirs are so many more than ours
  double squared_deviations_ =
      0;  // of the counts from what they are on average, each divided by its variance
};

// A sum takes 8 bytes, a check 4. A count is close to what it is on average for a set of this size, so the
// difference from that is written. `first` is the number of the first one.
void encode_symbols(std::span<const CodedSymbol> symbols, std::size_t first, std::uint64_t set_size,
                    WireWriter& out);
// Fails the reader where there are fewer than `count`.
std::vector<CodedSymbol> decode_symbols(std::size_t first, std::size_t count, std::uint64_t set_size,
                                        WireReader& in);

}  // namespace kin::sync
