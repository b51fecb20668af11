#include "cmd/sample_costs.h"

#include "cmd/tree_walk.h"
#include "lib/base/hash.h"
#include "lib/container/content_source.h"
#include "lib/object/content.h"
#include "store/object_storage.h"

#include <set>
#include <unordered_map>

namespace kin::cmd {
namespace {

class Counting {
 public:
  Counting(store::Repository& repository, const FileSample& sample, const SavingsMeter& meter)
      : repository_(repository), sample_(sample) {
    for (auto* const values :
         {&out_.identical, &out_.compressed, &out_.chunks, &out_.deltas, &out_.kin, &out_.objects})
      values->resize(sample.families());
    for (const SavingsMeter::Measured& object : meter.measured()) measured_.emplace(object.id, object);
  }

  Result<void> add(const Node& file, const std::string& path) {
    const std::span<const FileSample::Drawn> drawn = sample_.drawn_of(path);
    if (drawn.empty()) return {};
    WireWriter content;
    for (const Extent& extent : file.content) encode_extent(extent, content);
    const bool is_new = contents_.insert(hash(content.bytes())).second;
    if (is_new) out_.distinct_bytes += file.size;
    if (drawn.front().is_empty()) return {};
    const bool is_whole = drawn.front().begin == 0 && drawn.front().end >= file.size;
    if (is_whole && is_new) out_.identical[drawn.front().family] += static_cast<double>(file.size);
    return for_each_extent(repository_, file.content,
                           [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
                             if (extent.kind == Extent::Kind::hole) return {};
                             const FileSample::Drawn* at = drawn.data();
                             while (at + 1 != drawn.data() + drawn.size() && at[1].begin <= offset) ++at;
                             return add_extent(extent, at->family);
                           });
  }

  Result<SampleCosts> finish(std::uint64_t stored_bytes) {
    for (const auto& [id, family] : owners_) KIN_TRY(count(id, family));
    out_.beside = stored_bytes - std::min(stored_bytes, content_bytes_);
    return std::move(out_);
  }
  void add_entry() { ++out_.entries; }

 private:
  Result<void> add_extent(const Extent& extent, std::uint32_t family) {
    if (const auto object = measured_.find(SavingsMeter::name_of(extent.id)); object != measured_.end())
      out_.compressed[family] += object->second.compressed;
    return for_each_object(repository_, {extent}, [&](const Extent& needed) -> Result<bool> {
      const auto [owner, is_new] = owners_.try_emplace(needed.id, family);
      // Of several families it counts for the one that was surest to be drawn: then it counts as if for all.
      if (!is_new && sample_.chance(family) > sample_.chance(owner->second)) owner->second = family;
      return is_new;
    });
  }

  Result<void> count(const ObjectId& id, std::uint32_t family) {
    KIN_TRY_ASSIGN(const store::Location location, store::require_location(repository_, id));
    const std::uint64_t share = store::share_of(location.size, location.range.size, location.content_size);
    content_bytes_ += share;
    out_.kin[family] += static_cast<double>(share);
    out_.objects[family] += 1;
    if (const auto object = measured_.find(SavingsMeter::name_of(id)); object != measured_.end()) {
      out_.chunks[family] += object->second.compressed;
      out_.deltas[family] += object->second.best;
    }
    return {};
  }

  store::Repository& repository_;
  const FileSample& sample_;
  std::unordered_map<std::uint64_t, SavingsMeter::Measured> measured_;
  std::unordered_map<ObjectId, std::uint32_t, ObjectIdHash> owners_;  // their families
  std::set<Digest> contents_;
  std::uint64_t content_bytes_ = 0;
  SampleCosts out_;
};

}  // namespace

Result<SampleCosts> sample_costs(store::Repository& repository, const Snapshot& snapshot,
                                 const FileSample& sample, const SavingsMeter& meter,
                                 std::uint64_t stored_bytes, const std::stop_token& stop) {
  Counting counting(repository, sample, meter);
  TreeVisitor visitor;
  visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
    counting.add_entry();
    if (node.type == NodeType::file) KIN_TRY(counting.add(node, path));
    return true;
  };
  KIN_TRY(walk_tree(repository, snapshot.tree, "", visitor, stop));
  return counting.finish(stored_bytes);
}

}  // namespace kin::cmd
