#include "store/group_writer.h"

#include "lib/engine/block_assembler.h"

#include <utility>

namespace kin::store {
namespace {

constexpr std::size_t kGroupBytes[] = {BlockAssembler::kGroupBytes, BlockAssembler::kMetadataGroupBytes};

}  // namespace

Result<void> GroupWriter::add(const BlockObject& object, ByteView content) {
  const std::size_t slot = is_metadata(object.kind) ? 1 : 0;
  if (groups_[slot].content.size() + content.size() > kGroupBytes[slot]) KIN_TRY(put(slot));
  groups_[slot].objects.push_back(object);
  append(groups_[slot].content, content);
  return {};
}

Result<void> GroupWriter::flush_content() { return put(0); }

Result<void> GroupWriter::flush() {
  for (const std::size_t slot : {0U, 1U}) KIN_TRY(put(slot));
  return {};
}

Result<void> GroupWriter::put(std::size_t slot) {
  const Group group = std::exchange(groups_[slot], {});
  if (group.objects.empty()) return {};
  Encoding encoding = encoder_.compress_group(group.content);
  KIN_TRY_ASSIGN(const std::uint64_t bytes,
                 repository_.append(encoder_.keep(group.objects, group.content, std::move(encoding))));
  stored_bytes_ += bytes;
  return {};
}

}  // namespace kin::store
