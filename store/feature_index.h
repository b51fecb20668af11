// FeatureIndex: the FeatureStore of a repository, in a local cache. Losing it costs time and worse bases,
// never data.
//
// What was added lately is in memory; beyond a budget, and at each commit, it becomes a sorted run on disk
// (feature_runs.h). Neither changes an answer. Hints are not worth an error: damage that shows only later
// empties the index, and after a failure to read or write, which is told once, it goes on in memory alone,
// where it forgets what does not fit. segments() then says what is missing. One process at a time has the
// index of a directory. One thread at a time.
#pragma once

#include "lib/similarity/feature_store.h"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace kin::store {

struct FeatureIndexLimits {
  // For what was added since the last commit. 100,000 objects of 16 features take 36 MiB.
  std::size_t memory_bytes = 48 << 20;
  // A goal, for what tells quickly that a feature is not stored. 10 million objects of 16 features need about
  // 150 MiB; from there on it takes at least 8 bytes per object, and lookups get slower.
  std::size_t filter_bytes = 160 << 20;
};

class FeatureIndex : public FeatureStore {
 public:
  using OnLost = std::function<void(const Error&)>;

  // busy if another process has it; a damaged or foreign one is emptied, not reported. One that cannot be
  // read just now is an error, and stays as it is. `directory` is made if need be.
  static Result<std::unique_ptr<FeatureIndex>> open(const std::string& directory,
                                                    const FeatureIndexLimits& limits = {},
                                                    OnLost on_lost = {});
  // In a new directory under `parent` that disappears with the index; in memory, where that cannot be had. If
  // the process is killed, the next temporary ObjectIndex sweeps it.
  static std::unique_ptr<FeatureIndex> open_temporary(const std::string& parent,
                                                      const FeatureIndexLimits& limits = {},
                                                      OnLost on_lost = {});
  ~FeatureIndex() override;

  Result<void> prefetch(std::span<const Sketch* const> sketches) override;
  // Complete for sketches that were not prefetched too, only slower.
  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) override;
  Result<void> add(const ObjectId& id, const Sketch& sketch) override;

  // All that was added is kept, and `segment` is recorded as the one that it came from. What is not committed
  // may be lost, or be found twice once it is added again; either is harmless. Nothing is flushed to the
  // disk: a killed process loses nothing, and what a power failure leaves half written is known by its
  // checksums.
  void commit(const std::string& segment);
  std::set<std::string> segments() const;  // those committed
  void clear();
  const std::string& directory() const;  // empty: in memory

 private:
  struct State;
  explicit FeatureIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kin::store
