// BlockPipeline: new objects in, stored blocks out. An object gets its candidates, is tried against them, and
// becomes a delta, joins a group, or has a block of its own (BlockAssembler); blocks are encoded, checked and
// appended to the store. What is written depends on the order of the objects alone.
//
// Three threads of the caller's: one adds objects, one decides, one appends; the trials and the encoders have
// their own.
#pragma once

#include "lib/base/ordered_stage.h"
#include "lib/engine/block_assembler.h"
#include "lib/engine/block_store.h"
#include "lib/engine/encoder_pool.h"
#include "lib/engine/group_ratio.h"
#include "lib/engine/object_meter.h"
#include "lib/engine/recent_contents.h"
#include "lib/engine/trial.h"

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kin {

class BlockPipeline {
 public:
  // `meter`, if given, is told of all content that is added, by the thread that decides. It must outlive
  // this.
  BlockPipeline(BlockStore& store, const Effort& effort, unsigned jobs, ObjectMeter* meter,
                std::function<void(const std::string&)> on_warning);

  // The object was claimed. `previous`: what was at its place in an earlier version.
  Result<void> add(ObjectKind kind, const ObjectId& id, Bytes bytes, Sketch sketch,
                   const std::optional<ObjectId>& previous);
  // Hands on what add() has collected. Nothing more can be added after finish().
  Result<void> submit();
  void finish() { trying_.finish(); }

  // Each to the end of what is added, or until cancel().
  Result<void> decide();
  Result<void> append();

  void cancel();

  std::uint64_t objects_added() const { return objects_added_; }
  std::uint64_t bytes_added() const { return bytes_added_; }
  std::uint64_t bytes_stored() const { return bytes_stored_; }

 private:
  using Trying = OrderedStage<std::vector<OfferedObject>, std::vector<TriedObject>>;
  using Encoding = OrderedStage<PlannedBlock, EncodedBlock>;

  Trying::Worker make_trial();
  Encoding::Worker make_encoder();
  EncodedBlock encode(PlannedBlock block);
  void measure(const TriedObject& tried) const;
  bool worth_trying(const Candidate& candidate, std::size_t bytes) const;

  BlockStore& store_;
  const Effort effort_;
  ObjectMeter* const meter_;
  const std::function<void(const std::string&)> on_warning_;

  RecentContents recent_;
  EncoderPool encoders_;
  GroupRatio ratio_;
  BlockAssembler assembler_;            // of the thread that decides
  std::vector<OfferedObject> offered_;  // not yet handed to the trials
  std::uint64_t offered_bytes_ = 0;
  std::uint64_t objects_added_ = 0, bytes_added_ = 0;
  std::atomic<std::uint64_t> bytes_stored_{0};

  // Last, so that they are the first to go: their threads, which end here, use all of the above.
  Encoding encoding_;
  Trying trying_;
};

}  // namespace kin
