// Trial: what an object would take as a delta against each of its candidates, and alone. One instance per
// thread. Which of them is kept is BlockAssembler's to say: it knows the chains.
#pragma once

#include "lib/delta/block.h"
#include "lib/engine/block_store.h"
#include "lib/engine/encoder_pool.h"
#include "lib/engine/object_meter.h"
#include "lib/engine/recent_contents.h"

#include <memory>
#include <optional>
#include <vector>

namespace kin {

// From this size on, an object has a block of its own; smaller ones may join a group.
inline constexpr std::size_t kSoloBytes = 256 << 10;

struct OfferedBase {
  ObjectId id;
  bool close = false;    // shares at least half of the object's features, or is its previous version
  unsigned matches = 0;  // features in common, if it was found by them
};

// An object that is to be stored, and what it may be a delta against, best first.
struct OfferedObject {
  BlockObject object;
  std::shared_ptr<const Bytes> content;
  std::vector<OfferedBase> candidates;
  bool has_kin = false;  // resembles something, be it too far away to be a candidate
  bool is_long = false;  // the backup is, by now (Effort::long_after_bytes)
};

struct DeltaTrial {
  ObjectId base;
  std::shared_ptr<const Bytes> base_content;
  Encoding encoding;
  unsigned matches = 0;  // as OfferedBase
};

struct TriedObject {
  BlockObject object;
  std::shared_ptr<const Bytes> content;
  std::vector<DeltaTrial> deltas;
  std::optional<Encoding> whole;  // of those that cannot join a group
  // See MeasuredObject; only if it is measured.
  std::size_t alone_bytes = 0, zstd_bytes = 0, xdelta3_bytes = 0;
  bool has_kin = false;  // as OfferedObject
  bool is_long = false;  // likewise
};

class Trial {
 public:
  // `meter`, if there is one, says what is measured besides.
  Trial(BlockReader& store, const RecentContents& recent, EncoderPool& encoders, unsigned most_trials,
        const ObjectMeter* meter)
      : store_(store), recent_(recent), encoders_(encoders), most_trials_(most_trials), meter_(meter) {}

  TriedObject run(OfferedObject offered);

 private:
  // Null if it cannot be read: then it is no base.
  std::shared_ptr<const Bytes> base(const ObjectId& id);
  void measure(TriedObject& tried);

  BlockReader& store_;
  const RecentContents& recent_;
  EncoderPool& encoders_;
  const unsigned most_trials_;
  const ObjectMeter* const meter_;
};

}  // namespace kin
