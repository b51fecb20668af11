#include "lib/engine/backup.h"

#include "lib/base/catching.h"
#include "lib/base/check.h"
#include "lib/base/path_text.h"
#include "lib/base/worker_pool.h"
#include "lib/engine/backup_reader.h"
#include "lib/engine/block_pipeline.h"
#include "lib/engine/imported_tree.h"
#include "lib/object/content.h"
#include "lib/object/tree.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

namespace kin {
namespace {

// Memory: this, a 4 MiB buffer per reader, the limits of BlockPipeline, and what the store holds.
constexpr std::size_t kReadLimitBytes = 4 << 20;
// Small files travel together: handing over costs more than they do.
constexpr std::size_t kBatchEntries = 64;
constexpr std::uint64_t kBatchBytes = 1 << 20;
constexpr std::size_t kRecordsPerWrite = 256;
// Items whose features are looked up together.
constexpr std::size_t kLookupItems = 128;
constexpr std::uint64_t kLookupBytes = 2 << 20;

using Change = BackupObserver::Change;

class Backup {
 public:
  Backup(BlockStore& store, ResumeLog& log, const BackupRequest& request, BackupObserver& observer,
         std::stop_token stop)
      : store_(store),
        log_(log),
        request_(request),
        observer_(observer),
        stop_(std::move(stop)),
        blocks_(store, request.effort, request.jobs, request.meter,
                [this](const std::string& text) { observer_.on_warning(text); }),
        reading_(request.jobs, kReadLimitBytes, [this] { return make_reader(); }) {}

  Result<BackupResult> run();

 private:
  // A directory whose entries are being collected.
  struct Level {
    Node node;
    TreeWriter tree;
  };

  Reading::Worker make_reader();
  Result<void> walk();
  Result<void> choose();
  Result<void> choose(std::vector<ReadItem> items);
  Result<ObjectId> store_metadata(ObjectKind kind, Bytes bytes);
  void cancel_stages();
  Result<void> take(ReadItem item);
  Result<void> take_file(WalkEntry entry, bool reused);
  Result<void> take_imported(ReadItem item);
  Result<void> build_imported();
  Result<void> add_node(const Node& node) { return levels_.back().tree.add(node); }
  Result<void> record(const WalkEntry& entry);
  Result<void> fold_content(Node& file);
  void enter(Node node);
  Result<void> leave();
  void skip(const std::string& path, const Error& error) {
    observer_.on_skipped(path, error);
    ++skipped_;
  }

  BlockStore& store_;
  ResumeLog& log_;
  const BackupRequest& request_;
  BackupObserver& observer_;
  const std::stop_token stop_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  BlockPipeline blocks_;
  std::vector<Level> levels_;
  std::optional<ImportedTree> imported_;
  std::vector<Extent> file_extents_;  // of the file whose parts are coming
  const std::string record_prefix_ = resume_prefix(request_.snapshot);
  std::vector<std::pair<std::string, Bytes>> records_;
  SnapshotSummary summary_;
  ContainerCounts containers_;
  std::atomic<std::uint64_t> skipped_{0};

  Reading reading_;  // last, so that it is the first to go: its threads, which end here, use all of the above
};

Reading::Worker Backup::make_reader() {
  auto reader = std::make_shared<BackupReader>(store_, log_, request_, observer_, stop_);
  return [reader](WalkBatch batch, const Reading::Emit& emit) { reader->read(std::move(batch), emit); };
}

void Backup::cancel_stages() {
  reading_.cancel();
  blocks_.cancel();
}

Result<void> Backup::walk() {
  WalkBatch batch;
  std::uint64_t batch_bytes = 0;
  const auto submit = [&] {
    batch_bytes = 0;
    return reading_.submit(std::exchange(batch, {}));
  };
  const auto emit = [&](WalkEntry entry) {
    if (stop_.stop_requested()) return false;
    if (request_.sample != nullptr && entry.kind == WalkEntry::Kind::file &&
        request_.sample->drawn_of(entry.tree_path).empty())
      return true;
    batch_bytes += entry.node.size;
    batch.push_back(std::move(entry));
    return (batch.size() < kBatchEntries && batch_bytes < kBatchBytes) || submit();
  };
  Result<void> walked;
  if (request_.entries) {
    emit({});  // for the one reader that reads them all
  } else if (request_.stream) {
    WalkEntry entry;
    entry.kind = WalkEntry::Kind::file;
    entry.path = entry.node.name = request_.stream->name;
    entry.tree_path = "/" + request_.stream->name;
    entry.node.mode = 0644;
    entry.node.uid = request_.snapshot.uid;
    entry.node.gid = request_.snapshot.gid;
    entry.node.user = request_.snapshot.user;
    entry.node.mtime = entry.node.ctime = request_.snapshot.time;
    emit(std::move(entry));
  } else {
    const auto on_skip = [this](const std::string& path, const Error& error) { skip(path, error); };
    walked = Walker(request_.walk, &store_, request_.parent_tree, emit, on_skip).walk();
  }
  if (walked && !batch.empty()) submit();
  if (!walked) reading_.cancel();
  reading_.finish();
  return walked;
}

Result<ObjectId> Backup::store_metadata(ObjectKind kind, Bytes bytes) {
  const ObjectId id = store_.id_of(bytes);
  KIN_TRY_ASSIGN(const bool is_new, store_.claim(id));
  if (is_new) KIN_TRY(blocks_.add(kind, id, std::move(bytes), {}, {}));
  return id;
}

void Backup::enter(Node node) {
  levels_.push_back({std::move(node), TreeWriter([this](ObjectKind kind, Bytes bytes) {
                       return store_metadata(kind, std::move(bytes));
                     })});
}

Result<void> Backup::record(const WalkEntry& entry) {
  WireWriter out;
  encode_node(entry.node, out);
  records_.emplace_back(record_prefix_ + entry.tree_path, out.take());
  if (records_.size() < kRecordsPerWrite) return {};
  return log_.record(std::exchange(records_, {}));
}

// What was read becomes the file's.
Result<void> Backup::fold_content(Node& file) {
  KIN_TRY_ASSIGN(file.content, fold_extents(std::move(file_extents_), [this](ObjectKind kind, Bytes bytes) {
                   return store_metadata(kind, std::move(bytes));
                 }));
  summary_.bytes_read += file.size;
  return {};
}

Result<void> Backup::take_imported(ReadItem item) {
  WalkEntry& entry = item.entry;
  if (entry.kind == WalkEntry::Kind::file) KIN_TRY(fold_content(entry.node));
  file_extents_.clear();
  observer_.on_entry(entry, Change::added);
  if (!item.link_to) return imported_->add(entry.node, entry.tree_path);
  KIN_TRY_ASSIGN(const bool linked, imported_->add_link(entry.node, entry.tree_path, *item.link_to));
  if (!linked)
    skip(entry.path, Error(ErrorCode::not_found, path_text(entry.path) + " is a hard link to " +
                                                     path_text(*item.link_to) +
                                                     ", which does not come before it; left out"));
  return {};
}

Result<void> Backup::build_imported() {
  if (imported_->empty()) return Error(ErrorCode::not_found, "there are no entries in it");
  if (const ImportedTree::Replaced& replaced = imported_->replaced(); replaced.entries > 0)
    observer_.on_warning(
        fmt::format("{} replaced by a later one of the same name, as {} was",
                    replaced.entries == 1 ? "1 entry was" : grouped(replaced.entries) + " entries were",
                    path_text(replaced.example)));
  ImportedTree::Visitor visitor;
  visitor.enter = [this](Node directory) -> Result<void> {
    ++summary_.directories;
    enter(std::move(directory));
    return {};
  };
  visitor.add = [this](Node node) {
    ++(node.type == NodeType::file ? summary_.files : summary_.others);
    if (node.type == NodeType::file) ++summary_.files_new;
    summary_.bytes += node.size;
    return add_node(node);
  };
  visitor.leave = [this] { return leave(); };
  return imported_->visit(visitor);
}

Result<void> Backup::leave() {
  KIN_CHECK(levels_.size() > 1);
  Level done = std::move(levels_.back());
  KIN_TRY_ASSIGN(done.node.subtree, done.tree.finish());
  levels_.pop_back();
  return add_node(done.node);
}

Result<void> Backup::take_file(WalkEntry entry, bool reused) {
  if (!reused) {
    KIN_TRY(fold_content(entry.node));
    if (!request_.stream) KIN_TRY(record(entry));
  }
  const bool known = entry.before && entry.before->type == NodeType::file;
  const bool same =
      known && entry.before->content == entry.node.content && same_state(entry.node, *entry.before);
  const Change change = !known ? Change::added : same ? Change::unmodified : Change::changed;
  ++(change == Change::added ? summary_.files_new
     : same                  ? summary_.files_unmodified
                             : summary_.files_changed);
  ++summary_.files;
  summary_.bytes += entry.node.size;
  KIN_TRY(add_node(entry.node));
  observer_.on_entry(entry, change);
  return {};
}

Result<void> Backup::take(ReadItem item) {
  if (item.fatal) return *std::move(item.fatal);
  if (item.skipped) ++skipped_;
  for (NewObject& object : item.part.objects)
    if (object.is_new)
      KIN_TRY(blocks_.add(object.kind, object.id, std::move(object.bytes), std::move(object.sketch),
                          object.previous));
  file_extents_.insert(file_extents_.end(), item.part.extents.begin(), item.part.extents.end());
  if (item.outcome == ReadItem::Outcome::part) return {};
  if (item.outcome == ReadItem::Outcome::failed) {
    file_extents_.clear();
    return {};
  }
  containers_.add(item.containers);
  if (request_.entries) return take_imported(std::move(item));
  WalkEntry& entry = item.entry;
  switch (entry.kind) {
    case WalkEntry::Kind::file: {
      auto taken = take_file(std::move(entry), item.reused);
      file_extents_.clear();
      return taken;
    }
    case WalkEntry::Kind::other:
      ++summary_.others;
      observer_.on_entry(entry, !entry.before                           ? Change::added
                                : same_state(entry.node, *entry.before) ? Change::unmodified
                                                                        : Change::changed);
      return add_node(entry.node);
    case WalkEntry::Kind::enter:
      ++summary_.directories;
      enter(std::move(entry.node));
      return {};
    case WalkEntry::Kind::leave:
      return leave();
  }
  return {};
}

// Features are looked up for many objects at once: that is what makes it cheap.
Result<void> Backup::choose(std::vector<ReadItem> items) {
  std::vector<const Sketch*> sketches;
  for (ReadItem& item : items)
    for (NewObject& object : item.part.objects) {
      KIN_TRY_ASSIGN(object.is_new, store_.claim(object.id));
      if (object.is_new) sketches.push_back(&object.sketch);
      if (request_.meter != nullptr) request_.meter->on_met(object.id, object.is_new);
    }
  if (!sketches.empty()) KIN_TRY(store_.features().prefetch(sketches));
  for (ReadItem& item : items) KIN_TRY(take(std::move(item)));
  return {};
}

// One that is there only because something is in it.
Node unknown_directory(const Snapshot& snapshot) {
  Node node;
  node.type = NodeType::directory;
  node.mode = 0755;
  node.uid = snapshot.uid;
  node.gid = snapshot.gid;
  node.user = snapshot.user;
  node.mtime = node.ctime = snapshot.time;
  return node;
}

Result<void> Backup::choose() {
  enter(Node{});
  if (request_.entries) imported_.emplace(request_.entries->below, unknown_directory(request_.snapshot));
  std::vector<ReadItem> items;
  std::uint64_t bytes = 0;
  while (std::optional<std::vector<ReadItem>> next = reading_.next()) {
    if (stop_.stop_requested()) return {};
    for (ReadItem& item : *next) {
      bytes += item.part.object_bytes();
      items.push_back(std::move(item));
    }
    if (items.size() < kLookupItems && bytes < kLookupBytes) continue;
    KIN_TRY(choose(std::exchange(items, {})));
    bytes = 0;
  }
  KIN_TRY(reading_.result());
  KIN_TRY(choose(std::move(items)));
  return request_.entries ? build_imported() : Result<void>();
}

Result<BackupResult> Backup::run() {
  // Three tasks that run as long as the backup does, beside this thread, which looks for kin. Each waits for
  // others, so one that fails must not leave them waiting.
  Result<void> walked, decided, appended;
  WorkerPool side(3, 3);
  const auto start = [&](Result<void>& outcome, std::function<Result<void>()> work) {
    side.submit(
        [this, &outcome, work = std::move(work)]() -> Result<void> {
          outcome = catching(work);
          if (!outcome) cancel_stages();
          return {};
        },
        1);
  };
  start(walked, [this] { return walk(); });
  start(decided, [this] { return blocks_.decide(); });
  start(appended, [this] { return blocks_.append(); });

  BackupResult result;
  auto chosen = catching([&]() -> Result<void> {
    KIN_TRY(choose());
    if (stop_.stop_requested() || levels_.size() != 1) return interrupted();
    KIN_TRY_ASSIGN(result.tree, levels_.back().tree.finish());
    return {};
  });
  // Also after a failure: what was read need not be read again.
  const auto submitted = catching([this] { return blocks_.submit(); });
  if (chosen && !submitted) chosen = submitted;
  reading_.cancel();
  blocks_.finish();
  KIN_TRY(side.wait());
  // In this order: who fails because another did only sees its stage cancelled, and that is no error to the
  // walker and the appender. What was stored before is kept, if the disk lets us.
  for (Result<void>* const outcome : {&walked, &appended, &decided}) {
    if (*outcome) continue;
    const auto kept = store_.flush();
    return std::move(*outcome).error();
  }
  if (!records_.empty()) KIN_TRY(log_.record(std::exchange(records_, {})));
  const bool interrupted = stop_.stop_requested();
  if (interrupted || !chosen) {
    // What is encoded is kept: the next run will not have to do it again.
    KIN_TRY(store_.flush());
    if (interrupted)
      return Error(ErrorCode::cancelled,
                   "interrupted; what was stored so far is kept, and the next backup goes on from there");
    return std::move(chosen).error();
  }

  summary_.skipped = skipped_;
  summary_.objects_added = blocks_.objects_added();
  summary_.bytes_added = blocks_.bytes_added();
  summary_.bytes_stored = blocks_.bytes_stored();
  result.summary = summary_;
  result.containers = containers_;
  if (request_.skip_if_unchanged && request_.parent_tree == result.tree) {
    KIN_TRY(store_.flush());
    KIN_TRY(log_.clear_records(record_prefix_));
    return result;
  }
  Snapshot snapshot = request_.snapshot;
  snapshot.parent = request_.parent;
  snapshot.tree = result.tree;
  snapshot.summary = summary_;
  snapshot.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  KIN_TRY_ASSIGN(result.snapshot, store_.commit(snapshot));
  KIN_TRY(log_.clear_records(record_prefix_));
  return result;
}

}  // namespace

std::string resume_prefix(const Snapshot& snapshot) {
  WireWriter out;
  out.text(snapshot.host);
  for (const std::string& path : snapshot.paths) out.text(path);
  return hex(ByteView(hash(out.bytes())).first(8));
}

Result<BackupResult> backup(BlockStore& store, ResumeLog& log, const BackupRequest& request,
                            BackupObserver& observer, std::stop_token stop) {
  return Backup(store, log, request, observer, std::move(stop)).run();
}

}  // namespace kin
