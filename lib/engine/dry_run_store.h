// DryRunStore and DryRunLog: read and write nothing, so that a backup can tell what it would do.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/engine/resume_log.h"
#include "lib/similarity/feature_store.h"

#include <algorithm>

namespace kin {

// Finds what is stored and what the dry run saw, and leaves the store as it is.
class DryRunFeatures : public FeatureStore {
 public:
  DryRunFeatures(FeatureStore& stored, FeatureStore& seen) : stored_(stored), seen_(seen) {}

  Result<void> prefetch(std::span<const Sketch* const> sketches) override {
    KIN_TRY(seen_.prefetch(sketches));
    return stored_.prefetch(sketches);
  }
  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) override {
    KIN_TRY_ASSIGN(std::vector<Candidate> out, seen_.candidates(sketch, most));
    KIN_TRY_ASSIGN(const std::vector<Candidate> stored, stored_.candidates(sketch, most));
    out.insert(out.end(), stored.begin(), stored.end());
    std::stable_sort(out.begin(), out.end(),
                     [](const Candidate& a, const Candidate& b) { return a.matches > b.matches; });
    if (out.size() > most) out.resize(most);
    return out;
  }
  Result<void> add(const ObjectId& id, const Sketch& sketch) override { return seen_.add(id, sketch); }

 private:
  FeatureStore& stored_;
  FeatureStore& seen_;
};

class DryRunStore : public BlockStore {
 public:
  // `seen` gets the features of what the dry run meets: an empty one, which bounds what it takes.
  DryRunStore(BlockStore& store, FeatureStore& seen) : store_(store), features_(store.features(), seen) {}

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override { return store_.load(id); }
  Result<bool> contains(const ObjectId& id) override { return store_.contains(id); }
  Result<BlockRef> locate(const ObjectId& id) override { return store_.locate(id); }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override {
    return store_.load_block(block);
  }
  Result<Chain> chain(const ObjectId& id) override { return store_.chain(id); }
  ObjectId id_of(ByteView object) const override { return store_.id_of(object); }
  const Scanner& scanner() const override { return store_.scanner(); }
  FeatureStore& features() override { return features_; }
  Result<bool> claim(const ObjectId& id) override { return store_.claim(id); }
  bool is_stored_again(const ObjectId& id) const override { return store_.is_stored_again(id); }
  // The payload is nearly all that a pack would take.
  Result<std::uint64_t> append(const EncodedBlock& block) override {
    return block.payload.size() + encode_block_header(block.header).size();
  }
  Result<void> flush() override { return {}; }
  Result<SnapshotId> commit(const Snapshot&) override { return SnapshotId{}; }

 private:
  BlockStore& store_;
  DryRunFeatures features_;
};

class DryRunLog : public ResumeLog {
 public:
  explicit DryRunLog(ResumeLog& log) : log_(log) {}

  Result<void> record(const std::vector<std::pair<std::string, Bytes>>&) override { return {}; }
  Result<std::optional<Bytes>> recorded(const std::string& path) override { return log_.recorded(path); }
  Result<void> clear_records(const std::string&) override { return {}; }

 private:
  ResumeLog& log_;
};

}  // namespace kin
