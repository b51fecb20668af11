#include "lib/engine/block_store.h"

#include <algorithm>

namespace kin {

BlockContent::BlockContent(const std::vector<BlockObject>& objects, Bytes content, unsigned deltas)
    : content_(std::move(content)), deltas_(deltas) {
  entries_.reserve(objects.size());
  std::size_t offset = 0;
  for (const BlockObject& object : objects) {
    const bool group = object.kind == ObjectKind::group;
    entries_.push_back({object.id, group ? 0 : offset, static_cast<std::size_t>(object.size)});
    if (!group) offset += static_cast<std::size_t>(object.size);
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
}

BlockContent::BlockContent(BlockContent&& other) noexcept
    : entries_(std::move(other.entries_)),
      content_(std::move(other.content_)),
      deltas_(other.deltas_),
      verified_(other.verified_.load()) {}

std::optional<ObjectId> BlockContent::verify(const std::function<ObjectId(ByteView)>& id_of) const {
  if (verified_) return std::nullopt;
  for (const Entry& entry : entries_)
    if (id_of(ByteView(content_).subspan(entry.offset, entry.size)) != entry.id) return entry.id;
  verified_ = true;
  return std::nullopt;
}

std::optional<ByteView> BlockContent::find(const ObjectId& id) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), id,
                       [](const Entry& entry, const ObjectId& wanted) { return entry.id < wanted; });
  if (at == entries_.end() || at->id != id) return std::nullopt;
  return ByteView(content_).subspan(at->offset, at->size);
}

}  // namespace kin
