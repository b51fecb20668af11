#include "store/block_use.h"

#include "lib/container/content_source.h"
#include "lib/object/tree.h"

#include <algorithm>
#include <cstring>

namespace kin::store {
namespace {

std::uint64_t prefix_of(const ObjectId& id) {
  std::uint64_t out;
  std::memcpy(&out, id.bytes.data(), sizeof out);
  return out;
}

Result<void> check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  return {};
}

}  // namespace

Result<BlockUse> BlockUse::read(Repository& repository, const std::stop_token& stop) {
  BlockUse out(repository);
  // Who lists segments while others write misses none that was there; one that was merged away since was
  // replaced by one that is there now.
  KIN_TRY(repository.refresh_index());
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository.backend().list(FileKind::index));
  for (const FileInfo& file : files) {
    KIN_TRY(check_stop(stop));
    KIN_TRY_ASSIGN(const IndexSegment segment, repository.load_index_segment(file.name));
    KIN_TRY(out.add_segment(segment));
  }
  out.settle();
  return out;
}

Result<void> BlockUse::add_segment(const IndexSegment& segment) {
  if (blocks_.size() + segment.blocks.size() > UINT32_MAX)
    return Error(ErrorCode::unsupported, "the repository has more blocks than can be counted");
  const auto first = static_cast<std::uint32_t>(blocks_.size());
  for (const IndexBlock& block : segment.blocks) {
    Block& own = blocks_.emplace_back();
    own.bytes = static_cast<std::uint32_t>(block.range.size);
    own.has_base = block.base.has_value();
    if (block.base) own.base = prefix_of(*block.base);
  }
  for (const IndexObject& object : segment.objects)
    objects_.push_back({prefix_of(object.id), first + object.block, 0});
  return {};
}

void BlockUse::settle() {
  std::sort(objects_.begin(), objects_.end(),
            [](const Object& a, const Object& b) { return a.prefix < b.prefix; });
  for (const Block& block : blocks_) {
    ++all_.blocks;
    all_.bytes += block.bytes;
  }
}

std::vector<BlockUse::Object>::iterator BlockUse::find(std::uint64_t prefix) {
  return std::lower_bound(objects_.begin(), objects_.end(), prefix,
                          [](const Object& object, std::uint64_t wanted) { return object.prefix < wanted; });
}

Result<bool> BlockUse::need(const ObjectId& id, Role role) {
  const std::uint64_t prefix = prefix_of(id);
  auto at = find(prefix);
  if (at == objects_.end() || at->prefix != prefix)
    return Error(ErrorCode::corrupt, "object " + id.short_hex() + " is missing");
  if ((at->roles & role) != 0) return false;
  for (; at != objects_.end() && at->prefix == prefix; ++at) at->roles |= role;
  need_blocks(prefix);
  return true;
}

// And down the chain. A base that is missing is told of by who reads it; it takes no room.
void BlockUse::need_blocks(std::uint64_t prefix) {
  std::vector<std::uint64_t> left{prefix};
  while (!left.empty()) {
    const std::uint64_t wanted = left.back();
    left.pop_back();
    for (auto at = find(wanted); at != objects_.end() && at->prefix == wanted; ++at) {
      Block& block = blocks_[at->block];
      if (std::exchange(block.is_needed, true)) continue;
      ++needed_.blocks;
      needed_.bytes += block.bytes;
      if (block.has_base) left.push_back(block.base);
    }
  }
}

Result<void> BlockUse::add(const Snapshot& snapshot, const std::stop_token& stop) {
  return walk(snapshot.tree, 0, stop);
}

Result<void> BlockUse::walk(const ObjectId& tree, int depth, const std::stop_token& stop) {
  KIN_TRY(check_stop(stop));
  if (depth > kMostTreeDepth) return Error(ErrorCode::corrupt, "more directories deep than kin ever stores");
  TreeCursor cursor(*repository_, tree);
  std::optional<Error> missing;
  cursor.on_object([&](const ObjectId& id) {
    const auto is_new = need(id, kTree);
    if (!is_new) missing = is_new.error();
    return is_new && *is_new;
  });
  for (;;) {
    KIN_TRY_ASSIGN(const auto node, cursor.next());
    if (missing) return *missing;
    if (!node) return {};
    if (node->type == NodeType::file) {
      KIN_TRY(for_each_object(*repository_, node->content, [&](const Extent& extent) -> Result<bool> {
        return need(extent.id, extent.kind == Extent::Kind::data ? kData : kList);
      }));
    }
    if (node->type == NodeType::directory) KIN_TRY(walk(node->subtree, depth + 1, stop));
  }
}

}  // namespace kin::store
