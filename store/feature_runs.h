// FeatureRuns: the sorted runs of a feature index, and a RocksDB that is their catalogue. It also says which
// index segments they include, and how many objects have a number.
//
// Calls that answer corrupt found damage: the database is of no more use. One thread at a time.
#pragma once

#include "lib/base/result.h"
#include "store/feature_table.h"

#include <memory>
#include <set>
#include <span>
#include <string>

namespace kin::store {

class FeatureRuns {
 public:
  struct Settings {
    // A goal: new filters get what is left of it, but never less than 4 bits per feature.
    std::size_t filter_limit_bytes = 160 << 20;
  };

  // The directory is made if need be.
  static Result<std::unique_ptr<FeatureRuns>> open(const std::string& directory, const Settings& settings);
  ~FeatureRuns();

  // Appends what is stored of each key to what is there. Keys ascend, without duplicates.
  Result<void> read(std::span<const FeatureKey> keys, std::span<Postings> into);

  // The table becomes a run, and what follows is recorded with it: all or nothing. `segment` may be empty.
  Result<void> add(const FeatureTable& table, Ordinal objects, const std::string& segment);
  // Makes one run of several where there are enough of a size.
  Result<void> merge_if_due();

  Ordinal objects() const;
  const std::set<std::string>& segments() const;

 private:
  struct State;
  explicit FeatureRuns(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kin::store
