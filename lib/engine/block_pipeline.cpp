#include "lib/engine/block_pipeline.h"

#include <algorithm>
#include <utility>

namespace kin {
namespace {

constexpr std::size_t kTrialLimitBytes = 4 << 20;
constexpr std::size_t kEncodeLimitBytes = 4 << 20;
// Objects that are tried together.
constexpr std::size_t kTrialObjects = 32;
constexpr std::uint64_t kTrialBytes = 256 << 10;
// What is on its way: more than may have to wait for more to come, or nothing would ever arrive.
constexpr std::size_t kOnWayBytes = 8 << 20;
constexpr std::size_t kOnWayBytesPerJob = 2 << 20;
constexpr std::size_t kWaitingBytes = BlockAssembler::kGroupBytes + BlockAssembler::kMostWaitingBytes;
static_assert(kOnWayBytes > kWaitingBytes + kTrialBytes);
// After an object, those that are near it may be stored, and what waited before it: it must still be here
// then.
constexpr std::size_t kNearBytes = 8 << 20;
constexpr std::size_t kRecentBytes = kNearBytes + kWaitingBytes + Scanner::kMostBytes;
// More candidates are asked for than are tried: some may be gone.
constexpr std::size_t kSpareCandidates = 2;
// From this size on, a weak hint is worth a look far away.
constexpr std::size_t kWeakHintBytes = 128 << 10;

}  // namespace

BlockPipeline::BlockPipeline(BlockStore& store, const Effort& effort, unsigned jobs, ObjectMeter* meter,
                             std::function<void(const std::string&)> on_warning)
    : store_(store),
      effort_(effort),
      meter_(meter),
      on_warning_(std::move(on_warning)),
      recent_({kRecentBytes, kNearBytes, kOnWayBytes + jobs * kOnWayBytesPerJob}),
      encoders_(effort, jobs),
      assembler_(store, ratio_,
                 [this](PlannedBlock block) {
                   const std::size_t bytes = block.content->size();
                   return encoding_.submit(std::move(block), bytes);
                 }),
      encoding_(jobs, kEncodeLimitBytes, [this] { return make_encoder(); }),
      trying_(jobs, kTrialLimitBytes, [this] { return make_trial(); }) {}

// The object is new: it gets its candidates, and becomes one for those that follow.
Result<void> BlockPipeline::add(ObjectKind kind, const ObjectId& id, Bytes bytes, Sketch sketch,
                                const std::optional<ObjectId>& previous) {
  OfferedObject offered;
  offered.has_kin = previous.has_value();
  const bool again = store_.is_stored_again(id);
  // What no index knows any more may be its own previous version.
  if (previous && *previous != id && !again) offered.candidates.push_back({*previous, true});
  if (!sketch.empty()) {
    FeatureStore& features = store_.features();
    KIN_TRY_ASSIGN(const std::vector<Candidate> found,
                   features.candidates(sketch, effort_.candidates + kSpareCandidates));
    if (!found.empty()) offered.has_kin = true;
    for (const Candidate& candidate : found)
      if (!again && candidate.id != previous && candidate.id != id && worth_trying(candidate, bytes.size()))
        offered.candidates.push_back(
            {candidate.id, 2 * candidate.matches >= sketch.size(), candidate.matches});
    KIN_TRY(features.add(id, sketch));
  }
  ++objects_added_;
  bytes_added_ += bytes.size();
  offered.is_long = bytes_added_ > effort_.long_after_bytes;
  offered.object = {id, kind, bytes.size(), std::move(sketch)};
  offered.content = std::make_shared<const Bytes>(std::move(bytes));
  // Trees and lists are nobody's base.
  if (!is_metadata(kind) && !recent_.add(id, offered.content)) return interrupted();
  offered_bytes_ += offered.object.size;
  offered_.push_back(std::move(offered));
  if (offered_.size() < kTrialObjects && offered_bytes_ < kTrialBytes) return {};
  return submit();
}

// One feature in common is a weak hint. To try it costs little if the candidate is at hand; if it is to be
// decoded out of a group of megabytes, that takes longer than all else that is done for a small object.
bool BlockPipeline::worth_trying(const Candidate& candidate, std::size_t bytes) const {
  return candidate.matches > 1 || bytes >= kWeakHintBytes || recent_.is_near(candidate.id);
}

Result<void> BlockPipeline::submit() {
  const auto bytes = static_cast<std::size_t>(std::exchange(offered_bytes_, 0));
  if (offered_.empty() || trying_.submit(std::exchange(offered_, {}), bytes)) return {};
  return interrupted();
}

BlockPipeline::Trying::Worker BlockPipeline::make_trial() {
  auto trial = std::make_shared<Trial>(store_, recent_, encoders_, effort_.candidates, meter_);
  return [trial](std::vector<OfferedObject> objects, const Trying::Emit& emit) {
    std::vector<TriedObject> tried;
    std::size_t bytes = 0;
    for (OfferedObject& object : objects) {
      bytes += object.content->size() + 1024;
      tried.push_back(trial->run(std::move(object)));
    }
    emit(std::move(tried), bytes);
  };
}

Result<void> BlockPipeline::decide() {
  while (std::optional<std::vector<TriedObject>> batch = trying_.next())
    for (TriedObject& tried : *batch) {
      if (meter_ != nullptr && !is_metadata(tried.object.kind)) measure(tried);
      KIN_TRY(assembler_.add(std::move(tried)));
    }
  KIN_TRY(trying_.result());
  KIN_TRY(assembler_.flush());
  encoding_.finish();
  return {};
}

void BlockPipeline::measure(const TriedObject& tried) const {
  MeasuredObject measured;
  measured.id = tried.object.id;
  measured.size = tried.object.size;
  measured.alone_bytes = tried.alone_bytes;
  measured.zstd_bytes = tried.zstd_bytes;
  measured.xdelta3_bytes = tried.xdelta3_bytes;
  for (const DeltaTrial& delta : tried.deltas) {
    const std::uint64_t bytes = delta.encoding.payload.size();
    if (measured.delta_bytes && *measured.delta_bytes <= bytes) continue;
    measured.delta_bytes = bytes;
    measured.base = delta.base;
    measured.matches = delta.matches;
  }
  for (const DeltaTrial& delta : tried.deltas)
    if (meter_->compares() && delta.matches == measured.matches)
      measured.equal_deltas.push_back(delta.encoding.payload.size());
  meter_->on_tried(measured);
}

BlockPipeline::Encoding::Worker BlockPipeline::make_encoder() {
  return [this](PlannedBlock block, const Encoding::Emit& emit) {
    EncodedBlock encoded = encode(std::move(block));
    const std::size_t bytes = encoded.payload.size() + 1024;
    emit(std::move(encoded), bytes);
  };
}

EncodedBlock BlockPipeline::encode(PlannedBlock block) {
  const EncoderPool::Lease encoder = encoders_.take();
  if (!block.encoding)
    block.encoding = block.group_number && block.has_kin
                         ? encoder->compress_group(*block.content, block.is_long)
                         : encoder->compress_whole(*block.content, block.is_long);
  if (block.group_number)
    ratio_.report(*block.group_number, block.content->size(), block.encoding->payload.size());
  return encoder->keep(std::move(block.objects), *block.content, *std::move(block.encoding), block.base,
                       block.base_content ? ByteView(*block.base_content) : ByteView());
}

Result<void> BlockPipeline::append() {
  while (std::optional<EncodedBlock> block = encoding_.next()) {
    if (block->refused)
      on_warning_(
          "an encoded block did not decode to the same bytes and was kept plain: this machine's memory may "
          "be faulty");
    auto stored = store_.append(*block);
    if (!stored) return std::move(stored).error();
    for (const BlockObject& object : block->header.objects) recent_.stored(object.id);
    bytes_stored_ += *stored;
  }
  return encoding_.result();
}

void BlockPipeline::cancel() {
  recent_.cancel();
  trying_.cancel();
  ratio_.cancel();
  encoding_.cancel();
}

}  // namespace kin
