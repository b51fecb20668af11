#include "tests/stress/small_backup.h"

#include "lib/engine/block_assembler.h"
#include "lib/object/tree.h"

namespace kin::testing {
namespace {

constexpr std::size_t kRoomBytes = 64 << 20;  // for more than there ever is
constexpr std::uint64_t kFilesPerFlush = 16;

class SmallBackup {
 public:
  explicit SmallBackup(store::Repository& repository) : repository_(repository) {}

  Result<ObjectId> add(ObjectKind kind, Bytes bytes, const ObjectId* previous) {
    const ObjectId id = repository_.id_of(bytes);
    KIN_TRY_ASSIGN(const bool is_new, repository_.claim(id));
    if (!is_new) return id;
    OfferedObject offered;
    offered.object = {id, kind, bytes.size(), {}};
    const bool again = repository_.is_stored_again(id);
    if (kind == ObjectKind::data) {
      offered.object.features = repository_.scanner().sketch(bytes);
      if (previous != nullptr && *previous != id && !again) offered.candidates.push_back({*previous, true});
      KIN_TRY(find_kin(offered, again));
    }
    offered.content = std::make_shared<const Bytes>(std::move(bytes));
    if (kind == ObjectKind::data) recent_.add(id, offered.content);
    KIN_TRY(assembler_.add(trial_.run(std::move(offered))));
    return id;
  }

  Result<void> finish_blocks() {
    KIN_TRY(assembler_.flush());
    if (failed_) return *failed_;
    return {};
  }

 private:
  Result<void> find_kin(OfferedObject& offered, bool again) {
    const Sketch& sketch = offered.object.features;
    FeatureStore& features = repository_.features();
    const Sketch* const one[] = {&sketch};
    KIN_TRY(features.prefetch(one));
    KIN_TRY_ASSIGN(const std::vector<Candidate> found, features.candidates(sketch, 3));
    offered.has_kin = !found.empty();
    for (const Candidate& candidate : found)
      if (!again && candidate.id != offered.object.id)
        offered.candidates.push_back(
            {candidate.id, 2 * candidate.matches >= sketch.size(), candidate.matches});
    return features.add(offered.object.id, sketch);
  }

  bool append(PlannedBlock block) {
    const EncoderPool::Lease encoder = encoders_.take();
    if (!block.encoding) block.encoding = encoder->compress_group(*block.content);
    if (block.group_number)
      ratio_.report(*block.group_number, block.content->size(), block.encoding->payload.size());
    const EncodedBlock encoded =
        encoder->keep(std::move(block.objects), *block.content, *std::move(block.encoding), block.base,
                      block.base_content ? ByteView(*block.base_content) : ByteView());
    if (auto appended = repository_.append(encoded); !appended) failed_ = std::move(appended).error();
    for (const BlockObject& object : encoded.header.objects) recent_.stored(object.id);
    return !failed_;
  }

  store::Repository& repository_;
  RecentContents recent_{{kRoomBytes, kRoomBytes, kRoomBytes}};
  EncoderPool encoders_{Effort::fast(), 1};
  Trial trial_{repository_, recent_, encoders_, 1, nullptr};
  GroupRatio ratio_;
  std::optional<Error> failed_;
  BlockAssembler assembler_{repository_, ratio_,
                            [this](PlannedBlock block) { return append(std::move(block)); }};
};

Node file_node(const std::string& name, const ObjectId& content, std::uint64_t size) {
  Node out;
  out.name = name;
  out.size = size;
  out.content = {{Extent::Kind::data, size, content}};
  return out;
}

}  // namespace

// Paths are "directory/file".
Result<SnapshotId> back_up(store::Repository& repository, const FileContents& files,
                           std::map<std::string, ObjectId>& previous, Snapshot snapshot, Random& random) {
  SmallBackup backup(repository);
  const auto store = [&](ObjectKind kind, Bytes bytes) {
    return backup.add(kind, std::move(bytes), nullptr);
  };
  TreeWriter root(store);
  for (auto file = files.begin(); file != files.end();) {
    Node directory;
    directory.name = file->first.substr(0, file->first.find('/'));
    directory.type = NodeType::directory;
    TreeWriter tree(store);
    for (; file != files.end() && file->first.starts_with(directory.name + "/"); ++file) {
      const auto before = previous.find(file->first);
      KIN_TRY_ASSIGN(const ObjectId id, backup.add(ObjectKind::data, file->second,
                                                   before == previous.end() ? nullptr : &before->second));
      previous[file->first] = id;
      KIN_TRY(tree.add(file_node(file->first.substr(directory.name.size() + 1), id, file->second.size())));
      if (random.below(kFilesPerFlush) > 0) continue;
      KIN_TRY(backup.finish_blocks());
      KIN_TRY(repository.flush());
    }
    KIN_TRY_ASSIGN(directory.subtree, tree.finish());
    KIN_TRY(root.add(directory));
  }
  KIN_TRY_ASSIGN(snapshot.tree, root.finish());
  KIN_TRY(backup.finish_blocks());
  return repository.commit(snapshot);
}

}  // namespace kin::testing
