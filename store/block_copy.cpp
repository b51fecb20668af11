#include "store/block_copy.h"

#include "lib/engine/block_assembler.h"

#include <algorithm>
#include <utility>

namespace kin::store {
namespace {

// As in a backup: what a block of its own costs, what a group makes of a byte, and what a delta has to save.
constexpr double kBlockOverhead = 96;
constexpr double kGroupCost = 0.4;
constexpr double kSmallGain = 0.5;
constexpr double kSoloGain = 0.95;
// Some of the candidates may be gone.
constexpr std::size_t kCandidates = 3;

}  // namespace

Result<BlockCopy::SourceBlock> BlockCopy::read(const ObjectId& id) {
  KIN_TRY_ASSIGN(const BlockRef at, source_.locate(id));
  KIN_TRY_ASSIGN(OpenedBlock opened, source_.open_block_at(at));
  // This decodes the payload, and compares each object with its id.
  auto content = source_.decode(opened);
  if (!content) return std::move(content).error().context("object " + id.short_hex());
  copied_.read_bytes += at.stored_size;
  return SourceBlock{std::move(opened), *std::move(content)};
}

Result<std::optional<Error>> BlockCopy::copy(const ObjectId& id) {
  if (ids_.content.find(id)) return std::optional<Error>();
  if (auto block = read(id)) KIN_TRY(copy_block(*std::move(block), id));
  if (ids_.content.find(id)) return std::optional<Error>();
  // It may be whole at another place.
  const auto bytes = source_.load(id);
  if (!bytes) return std::optional(bytes.error());
  const ObjectId there = target_.id_of(**bytes);
  ids_.content.add(id, there);
  KIN_TRY_ASSIGN(const auto object, claim(ObjectKind::data, there, **bytes));
  if (object) KIN_TRY(add(*object));
  return std::optional<Error>();
}

Result<std::optional<BlockCopy::NewObject>> BlockCopy::claim(ObjectKind kind, const ObjectId& id,
                                                             ByteView bytes) {
  KIN_TRY_ASSIGN(const bool is_new, target_.claim(id));
  if (!is_new) return std::optional<NewObject>();
  NewObject out{{id, kind, bytes.size(), {}}, bytes};
  if (!is_metadata(kind)) out.object.features = target_.scanner().sketch(bytes);
  ++copied_.objects;
  copied_.bytes += bytes.size();
  return std::optional(std::move(out));
}

Result<void> BlockCopy::copy_block(SourceBlock block, const ObjectId& asked_for) {
  BlockHeader& header = block.opened.header;
  std::vector<NewObject> objects;
  for (const BlockObject& object : header.objects) {
    if (ids_.content.find(object.id) || (object.id != asked_for && !is_wanted_(object.id))) continue;
    const std::optional<ByteView> bytes = block.content.find(object.id);
    if (!bytes) continue;
    const ObjectId there = target_.id_of(*bytes);
    ids_.content.add(object.id, there);
    KIN_TRY_ASSIGN(auto claimed, claim(object.kind, there, *bytes));
    if (claimed) objects.push_back(*std::move(claimed));
  }
  if (objects.empty()) return {};
  bool stays = objects.size() == header.objects.size();
  std::optional<ObjectId> base;
  if (header.base) {
    KIN_TRY_ASSIGN(base, find_base(*header.base, objects.front().object));
    stays = stays && base.has_value();
    ++(stays ? copied_.deltas_kept : copied_.deltas_replaced);
  }
  if (!stays) {
    for (const NewObject& object : objects) {
      const bool joins_group = !header.base && object.bytes.size() < kSoloBytes;
      if (!joins_group) {
        KIN_TRY(add(object));
        continue;
      }
      if (!object.object.features.empty())
        KIN_TRY(target_.features().add(object.object.id, object.object.features));
      KIN_TRY(groups_.add(object.object, object.bytes));
    }
    return {};
  }
  header.base = base;
  for (std::size_t i = 0; i < objects.size(); ++i) header.objects[i] = std::move(objects[i].object);
  return append({std::move(header), std::move(block.opened.payload)});
}

// A block that takes its features along: they are found by who looks for kin.
Result<void> BlockCopy::append(const EncodedBlock& block) {
  for (const BlockObject& object : block.header.objects)
    if (!object.features.empty()) KIN_TRY(target_.features().add(object.id, object.features));
  KIN_TRY_ASSIGN(const std::uint64_t bytes, target_.append(block));
  copied_.stored_bytes += bytes;
  return {};
}

Result<std::optional<ObjectId>> BlockCopy::find_base(const ObjectId& base, const BlockObject& object) {
  if (!ids_.content.find(base) && is_wanted_(base)) KIN_TRY(copy(base));
  std::optional<ObjectId> there = ids_.content.find(base);
  if (!there) {
    // It may have come by itself, or with an earlier copy.
    const auto bytes = source_.load(base);
    if (bytes) there = target_.id_of(**bytes);
  }
  if (!there) return there;
  KIN_TRY_ASSIGN(const bool leans_well, may_lean(*there, object));
  return leans_well ? there : std::nullopt;
}

Result<bool> BlockCopy::may_lean(const ObjectId& base, const BlockObject& object) {
  // Whatever leaned on the old place of the object would make a circle.
  if (base == object.id || target_.is_stored_again(object.id)) return false;
  KIN_TRY_ASSIGN(bool is_there, target_.contains(base));
  if (!is_there) {
    // A base is in an earlier block than its delta, at every moment.
    KIN_TRY(groups_.flush_content());
    KIN_TRY_ASSIGN(is_there, target_.contains(base));
  }
  if (!is_there) return false;
  const auto chain = target_.chain(base);
  if (!chain) return false;
  const std::uint64_t most = std::max<std::uint64_t>(BlockAssembler::kMostChainBytes, 16 * object.size);
  return chain->depth + 1 <= BlockAssembler::kMostDepth && chain->bytes + object.size <= most;
}

// The smallest of a delta against what resembles it in the target, a place in a group, and a block of its
// own.
Result<void> BlockCopy::add(const NewObject& added) {
  const BlockObject& object = added.object;
  const bool is_solo = added.bytes.size() >= kSoloBytes;
  std::optional<Encoding> best;
  std::optional<ObjectId> base;
  std::shared_ptr<const Bytes> base_content;
  if (is_solo) best = encoder_.compress_whole(added.bytes);
  double least = is_solo ? (static_cast<double>(best->payload.size()) + kBlockOverhead) * kSoloGain
                         : static_cast<double>(added.bytes.size()) * kGroupCost * kSmallGain;
  if (!object.features.empty()) {
    FeatureStore& features = target_.features();
    const Sketch* const sketch = &object.features;
    KIN_TRY(features.prefetch({&sketch, 1}));
    KIN_TRY_ASSIGN(const std::vector<Candidate> candidates,
                   features.candidates(object.features, kCandidates));
    KIN_TRY(features.add(object.id, object.features));
    for (const Candidate& candidate : candidates) {
      KIN_TRY_ASSIGN(const bool leans_well, may_lean(candidate.id, object));
      if (!leans_well) continue;
      const auto content = target_.load(candidate.id);
      if (!content) continue;
      auto delta =
          encoder_.compress_delta(**content, added.bytes, 2 * candidate.matches >= object.features.size());
      if (delta && static_cast<double>(delta->payload.size()) + kBlockOverhead < least) {
        least = static_cast<double>(delta->payload.size()) + kBlockOverhead;
        best = *std::move(delta);
        base = candidate.id;
        base_content = *content;
      }
      break;
    }
  }
  if (!best) return groups_.add(object, added.bytes);
  const EncodedBlock block = encoder_.keep({object}, added.bytes, *std::move(best), base,
                                           base_content ? ByteView(*base_content) : ByteView());
  KIN_TRY_ASSIGN(const std::uint64_t bytes, target_.append(block));
  copied_.stored_bytes += bytes;
  return {};
}

Result<ObjectId> BlockCopy::store(ObjectKind kind, Bytes bytes) {
  const ObjectId id = target_.id_of(bytes);
  KIN_TRY_ASSIGN(const auto object, claim(kind, id, bytes));
  if (!object) return id;
  KIN_TRY(is_metadata(kind) ? groups_.add(object->object, bytes) : add(*object));
  return id;
}

CopiedContent BlockCopy::copied() const {
  CopiedContent out = copied_;
  out.stored_bytes += groups_.stored_bytes();
  return out;
}

}  // namespace kin::store
