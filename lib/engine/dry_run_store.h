// DryRunStore and DryRunLog: read and write nothing, so that a backup can tell what it would do.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/engine/resume_log.h"

namespace kin {

class DryRunStore : public BlockStore {
 public:
  explicit DryRunStore(BlockStore& store) : store_(store) {}

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override { return store_.load(id); }
  Result<bool> contains(const ObjectId& id) override { return store_.contains(id); }
  Result<BlockRef> locate(const ObjectId& id) override { return store_.locate(id); }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override {
    return store_.load_block(block);
  }
  ObjectId id_of(ByteView object) const override { return store_.id_of(object); }
  const Segmenter& segmenter() const override { return store_.segmenter(); }
  Result<bool> claim(const ObjectId& id) override { return store_.claim(id); }
  // The payload is nearly all that a pack would take.
  Result<std::uint64_t> append(const EncodedBlock& block) override {
    return block.payload.size() + encode_block_header(block.header).size();
  }
  Result<void> flush() override { return {}; }
  Result<SnapshotId> commit(const Snapshot&) override { return SnapshotId{}; }

 private:
  BlockStore& store_;
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
