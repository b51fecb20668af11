// SavingsMeter: what the content of a backup takes by simpler schemes than kin's, and where deltas save what
// they save; added up as it goes by. Some 30 bytes for each object.
#pragma once

#include "lib/engine/object_meter.h"
#include "lib/object/content.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kin {

// All in bytes of content, without what any store needs besides. "Compressed" is by itself, by zstd at
// kAloneLevel.
struct Savings {
  // Objects that have so many features in common with their base; of none: without one that was tried and
  // made them smaller.
  struct Matches {
    std::uint64_t objects = 0, bytes = 0;
    std::uint64_t compressed = 0, deltas = 0;  // the smaller one of each object
  };
  // The objects that save most, of all that saves anything: which part of them and of their bytes saves which
  // part of what deltas save beyond compression. From 0 to 1.
  struct Skew {
    double objects = 0, bytes = 0, saved = 0;
  };
  // Every object in blocks of so many bytes, as on a disk.
  struct Rounding {
    std::uint64_t block = 0, original = 0, compressed = 0, deltas = 0;
  };
  // If a delta is kept only where it takes at most so much of what the object takes compressed.
  struct Threshold {
    unsigned percent = 0;
    std::uint64_t deltas = 0, delta_objects = 0;
  };
  // Objects of at least this size.
  struct Minimum {
    std::uint64_t size = 0, objects = 0, bytes = 0, compressed = 0, deltas = 0;
  };
  // Of objects that have several bases with the most features in common: deltas against the one that is found
  // first, the best one, and what they take on average.
  struct EqualBases {
    std::uint64_t objects = 0, bytes = 0, first = 0, best = 0;
    double average = 0;
  };
  // Of objects that have a base: by one program, by the other, and by which is better for each.
  struct Programs {
    std::uint64_t objects = 0, bytes = 0, compressed = 0, zstd = 0, xdelta3 = 0, better = 0;
  };
  // An object that takes much less as a delta.
  struct Pair {
    ObjectId object, base;
    std::uint64_t size = 0, compressed = 0, delta = 0;
    unsigned matches = 0;
  };

  std::uint64_t distinct_files = 0, distinct_file_bytes = 0;  // identical files once
  std::uint64_t files_compressed = 0;    // each file compressed, identical ones each time
  std::uint64_t objects_compressed = 0;  // each object compressed, once
  std::uint64_t deltas = 0;              // each object once, as a delta where that is smaller
  std::uint64_t delta_objects = 0;       // for which it is
  std::vector<Matches> by_matches;       // the index is the number of features
  std::vector<Skew> skew;                // ascending, from nothing to all
  std::vector<Pair> pairs;               // that save most, the best first
  std::vector<Rounding> roundings;
  std::vector<Threshold> thresholds;
  std::vector<Minimum> minimums;
  EqualBases equal_bases;  // both only of who compares
  Programs programs;
};

class SavingsMeter : public ObjectMeter {
 public:
  static constexpr std::size_t kMostPairs = 20;

  explicit SavingsMeter(bool compares = false) : compares_(compares) {}

  bool compares() const override { return compares_; }
  void on_met(const ObjectId& id, bool is_new) override;
  void on_tried(const MeasuredObject& object) override;
  // A file whose objects were met. By the thread of on_met().
  void on_file(std::uint64_t size, const std::vector<Extent>& content);

  // Once, when the backup is done.
  Savings result();

  struct Measured {
    std::uint64_t id;  // name_of() it
    std::uint32_t size, compressed, best;
    std::uint32_t saved() const { return compressed - best; }
  };
  // The objects that were tried, when the backup is done; in no order.
  const std::vector<Measured>& measured() const { return measured_; }
  static std::uint64_t name_of(const ObjectId& id);

 private:
  void keep_pair(const MeasuredObject& object);
  void compare(const MeasuredObject& object);
  std::vector<Savings::Skew> skew();
  void sweep(Savings& out) const;

  const bool compares_;
  // Of on_met().
  std::unordered_map<std::uint64_t, std::uint64_t> repeats_;  // beyond the first time, by name
  std::unordered_set<std::uint64_t> files_;                   // by the start of their contents' digests
  std::uint64_t distinct_file_bytes_ = 0;
  // Of on_tried().
  std::vector<Measured> measured_;
  Savings of_objects_;
};

}  // namespace kin
