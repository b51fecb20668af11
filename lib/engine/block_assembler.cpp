#include "lib/engine/block_assembler.h"

#include <algorithm>
#include <utility>

namespace kin {
namespace {

// What a block of its own costs: sizes, seals, the base's id, a line in the index.
constexpr double kBlockOverhead = 96;
// A delta instead of a place in a group must save this much: the group's other objects lose a neighbour, and
// the reader has a chain to follow.
constexpr double kSmallGain = 0.5;
constexpr double kSoloGain = 0.95;
constexpr std::size_t kMostRemembered = 1 << 18;

}  // namespace

Result<void> BlockAssembler::emit(PlannedBlock block) {
  if (sink_(std::move(block))) return {};
  return interrupted();
}

Result<void> BlockAssembler::emit_delta(PlannedBlock block) {
  if (!block.base || !unstored_.contains(*block.base)) return emit(std::move(block));
  unstored_.insert(block.objects.front().id);
  waiting_bytes_ += block.content->size();
  waiting_.push_back(std::move(block));
  return waiting_bytes_ < kMostWaitingBytes ? Result<void>() : emit_group(groups_[0]);
}

void BlockAssembler::remember(const ObjectId& id, const Chain& chain) {
  if (!chains_.insert_or_assign(id, chain).second) return;
  remembered_.push_back(id);
  if (remembered_.size() <= kMostRemembered) return;
  chains_.erase(remembered_.front());
  remembered_.pop_front();
}

std::optional<Chain> BlockAssembler::chain_of(const ObjectId& id) {
  if (const auto at = chains_.find(id); at != chains_.end()) return at->second;
  const auto chain = store_.chain(id);
  return chain ? std::optional(*chain) : std::nullopt;
}

DeltaTrial* BlockAssembler::choose_delta(TriedObject& tried, double alone, Chain& chain) {
  const std::uint64_t size = tried.object.size;
  DeltaTrial* best = nullptr;
  double least = alone * (tried.whole || size >= kSoloBytes ? kSoloGain : kSmallGain);
  for (DeltaTrial& delta : tried.deltas) {
    const std::optional<Chain> below = chain_of(delta.base);
    if (!below || below->depth + 1 > kMostDepth) continue;
    if (below->bytes + size > std::max<std::uint64_t>(kMostChainBytes, 16 * size)) continue;
    const double score = (static_cast<double>(delta.encoding.payload.size()) + kBlockOverhead) * kMostDepth /
                         (kMostDepth - below->depth);
    if (score >= least) continue;
    least = score;
    best = &delta;
    chain = {below->depth + 1, below->bytes + size};
  }
  return best;
}

Result<void> BlockAssembler::add(TriedObject tried) {
  if (is_metadata(tried.object.kind)) return join_group(std::move(tried));
  const auto size = static_cast<double>(tried.object.size);
  const bool solo = tried.object.size >= kSoloBytes;
  const double alone = tried.whole ? static_cast<double>(tried.whole->payload.size()) + kBlockOverhead
                                   : size * (solo ? 1.0 : group_cost_);
  Chain chain{0, tried.object.size};
  DeltaTrial* const delta = choose_delta(tried, alone, chain);
  if (delta == nullptr && !solo) return join_group(std::move(tried));

  remember(tried.object.id, chain);
  PlannedBlock block;
  block.is_long = tried.is_long;
  block.content = std::move(tried.content);
  block.objects.push_back(std::move(tried.object));
  if (delta != nullptr) {
    block.base = delta->base;
    block.base_content = std::move(delta->base_content);
    block.encoding = std::move(delta->encoding);
  } else if (tried.whole) {
    block.encoding = *std::move(tried.whole);
  }
  return emit_delta(std::move(block));
}

Result<void> BlockAssembler::join_group(TriedObject tried) {
  const bool is_tree = is_metadata(tried.object.kind);
  Group& group = groups_[is_tree ? 1 : 0];
  const std::size_t most = is_tree ? kMetadataGroupBytes : kGroupBytes;
  if (group.content.size() + tried.content->size() > most) KIN_TRY(emit_group(group));
  if (group.content.capacity() == 0) group.content.reserve(most);
  append(group.content, *tried.content);
  if (tried.has_kin) group.kin_bytes += tried.content->size();
  group.is_long = tried.is_long;
  // The group may yet grow to this.
  if (!is_tree) {
    remember(tried.object.id, {0, kGroupBytes});
    unstored_.insert(tried.object.id);
  }
  group.objects.push_back(std::move(tried.object));
  return {};
}

Result<void> BlockAssembler::emit_group(Group& group) {
  if (group.objects.empty()) return {};
  PlannedBlock block;
  const bool is_content = &group == &groups_[0];
  block.objects = std::move(group.objects);
  block.is_long = group.is_long;
  block.has_kin = 2 * group.kin_bytes >= group.content.size();
  block.content = std::make_shared<const Bytes>(std::move(group.content));
  group = Group{};
  if (is_content) block.group_number = content_groups_++;
  KIN_TRY(emit(std::move(block)));
  if (!is_content) return {};
  unstored_.clear();
  waiting_bytes_ = 0;
  for (PlannedBlock& delta : std::exchange(waiting_, {})) KIN_TRY(emit(std::move(delta)));
  // The last two may still be in work.
  if (content_groups_ > 2) group_cost_ = ratio_.after(content_groups_ - 2);
  return {};
}

Result<void> BlockAssembler::flush() {
  for (Group& group : groups_) KIN_TRY(emit_group(group));
  return {};
}

}  // namespace kin
