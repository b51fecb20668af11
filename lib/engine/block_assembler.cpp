#include "lib/engine/block_assembler.h"

#include <utility>

namespace kin {

Result<void> BlockAssembler::emit(PlainBlock block) {
  if (block.objects.empty() || sink_(std::move(block))) return {};
  return Error(ErrorCode::cancelled, "interrupted");
}

Result<void> BlockAssembler::add(ObjectKind kind, const ObjectId& id, Bytes bytes) {
  KIN_TRY_ASSIGN(const bool is_new, store_.claim(id));
  if (!is_new) return {};
  ++added_objects_;
  added_bytes_ += bytes.size();
  if (bytes.size() >= kSoloBytes) {
    PlainBlock solo;
    solo.objects.push_back({id, kind, bytes.size(), {}});
    solo.content = std::move(bytes);
    return emit(std::move(solo));
  }
  PlainBlock& group = groups_[is_metadata(kind) ? 1 : 0];
  if (group.content.size() + bytes.size() > kGroupBytes) KIN_TRY(emit(std::exchange(group, PlainBlock{})));
  if (group.content.capacity() == 0) group.content.reserve(kGroupBytes);
  group.objects.push_back({id, kind, bytes.size(), {}});
  append(group.content, bytes);
  return {};
}

Result<void> BlockAssembler::flush() {
  for (PlainBlock& group : groups_) KIN_TRY(emit(std::exchange(group, PlainBlock{})));
  return {};
}

}  // namespace kin
