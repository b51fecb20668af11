// mbox files as a SyncStore: the root is one of them, which is then the folder "", or a directory of them.
// There a folder is a file, named by its path, or a directory on the way to one: mbox has no folder that
// holds both messages and folders.
//
// A file whose first line begins as an envelope but is none, or that is too large to be worked on in memory,
// is not taken apart: it is an entry of type file in the folder of its directory, and replaced as a whole.
//
// Messages have no names. What tells them apart is their content, so a scan reads the whole file; it is left
// out as long as the file's inode, size and time are the same. A batch of changes costs one appending write,
// if it only adds, or else one rewriting of the file.
#include "lib/sync/mbox_change.h"
#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_folders.h"
#include "lib/sync/mbox_lock.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/mbox_opaque.h"
#include "lib/sync/mbox_sender.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace kin::sync {

int detect_mbox(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mbox(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mbox_with(const std::string& root, const mbox::Options& options);

namespace mbox {
namespace {

constexpr std::size_t kMostLookedAt = 1000;  // files of a directory, to detect what it is
constexpr std::size_t kMostTables = 4;
// A file that was just written may change again within the same time stamp.
constexpr std::int64_t kQuietSeconds = 2;

class MboxStore : public SyncStore {
 public:
  MboxStore(std::string root, const Options& options) : folders_(std::move(root), options) {}

  const char* kind() const override { return "mbox"; }
  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override {
    return folders_.all(on_skipped);
  }
  Result<std::optional<std::uint64_t>> folder_fingerprint(const std::string& folder) override;
  Result<void> scan(const std::string& folder, const OnEntry& on_entry, const OnSkipped& on_skipped) override;
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override;
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override;
  std::string path_of(const std::string& folder, const Entry& entry) const override;

 private:
  struct Known {
    struct stat info {};
    Table table;
  };
  struct Job {
    std::size_t index;  // of the change
    StoreChange::Kind kind;
  };

  Result<void> scan_box(const Place& place, const std::string& folder, const OnEntry& on_entry);
  // A message with its header as it is in the file.
  Result<Bytes> load(const std::string& folder, const Entry& entry);
  Result<void> apply_jobs(const std::string& folder, const std::vector<Job>& jobs,
                          std::vector<StoreChange>& changes, std::vector<Result<Entry>>& answers);
  void apply_box(const std::string& folder, const std::vector<Job>& jobs, std::vector<StoreChange>& changes,
                 std::vector<Result<Entry>>& answers);
  Result<void> load_moved(StoreChange& change);
  void remember(const std::string& folder, const struct stat& info, Table table);

  Folders folders_;
  std::map<std::string, Known> tables_;  // of a few folders that were used last
};

Result<std::optional<std::uint64_t>> MboxStore::folder_fingerprint(const std::string& folder) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  // What cannot be looked at is told by the scan that comes then.
  const std::optional<std::uint64_t> unknown;
  const auto spot = folders_.spot_of(folder, false);
  struct stat info {};
  if (!spot || ::fstatat(spot->place.directory, spot->place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return unknown;
  const Timestamp time = now();
  const Fingerprint seen = fingerprint_of(info);
  const bool is_quiet =
      time.seconds * kSecond + time.nanoseconds - seen.modified_ns >= kQuietSeconds * kSecond;
  if (!S_ISREG(info.st_mode) || !is_quiet || has_copy(spot->place)) return unknown;
  WireWriter out;
  out.u64(seen.inode);
  out.u64(seen.size);
  out.u64(static_cast<std::uint64_t>(seen.modified_ns));
  const Digest digest = hash(out.bytes());
  return std::optional(WireReader(digest).u64());
}

Result<void> MboxStore::scan_box(const Place& place, const std::string& folder, const OnEntry& on_entry) {
  struct stat info {};
  KIN_TRY_ASSIGN(const Bytes file, read_quiet(place, folders_.options(), info));
  if (!file.empty() && !begins_as_mbox(as_text(file))) return message_changed(place.path);
  const Table table = Table::of(file);
  remember(folder, info, table);
  for (const std::uint32_t at : table.order()) {
    const Row& row = table.rows()[at];
    KIN_TRY(on_entry(entry_of(folder, row, marks_of(message_in(file, row.range)))));
  }
  return {};
}

// An mbox is read whole or not at all.
Result<void> MboxStore::scan(const std::string& folder, const OnEntry& on_entry,
                             const OnSkipped& on_skipped) {
  KIN_TRY_ASSIGN(const bool is_file, folders_.root_is_file());
  if (!is_file && folder.empty()) return scan_files(folders_, folder, on_entry, on_skipped);
  KIN_TRY_ASSIGN(const Spot spot, folders_.spot_of(folder, false));
  struct stat info {};
  KIN_TRY_ASSIGN(const Class found, settled_class_of(spot.place, folders_.options(), info));
  if (found == Class::box) return scan_box(spot.place, folder, on_entry);
  if (found == Class::opaque && is_file) return on_entry(entry_of_file(folder, kRootFileName, info));
  if (found == Class::directory && !is_file) return scan_files(folders_, folder, on_entry, on_skipped);
  if (is_file) return cannot_hold(spot.place.path, "is no mbox");
  return errno_error("cannot read", spot.place.path, ENOENT);
}

void MboxStore::remember(const std::string& folder, const struct stat& info, Table table) {
  if (tables_.size() >= kMostTables && !tables_.contains(folder)) tables_.erase(tables_.begin());
  tables_[folder] = {info, std::move(table)};
}

Result<Bytes> MboxStore::load(const std::string& folder, const Entry& entry) {
  KIN_TRY_ASSIGN(const Spot spot, folders_.spot_of(folder, false));
  struct stat info {};
  if (const auto known = tables_.find(folder); known != tables_.end()) {
    KIN_TRY_ASSIGN(const Fd fd, open_regular(spot.place, O_RDONLY, info));
    const Row* const row =
        same_file(info, known->second.info) ? known->second.table.find(entry.local) : nullptr;
    if (row != nullptr) {
      Bytes message(row->range.end - row->range.header);
      KIN_TRY_ASSIGN(const std::size_t n,
                     read_up_to_at(fd.get(), message, row->range.header, spot.place.path));
      // Somebody may write at this moment: the hash tells.
      if (n == message.size() && hash(content_of(message)) == row->digest) return message;
    }
  }
  KIN_TRY_ASSIGN(const Bytes file, read_quiet(spot.place, folders_.options(), info));
  if (!begins_as_mbox(as_text(file)))
    return Error(ErrorCode::not_found, printable(path_of(folder, entry)) + " is gone");
  remember(folder, info, Table::of(file));
  const Row* const row = tables_[folder].table.find(entry.local);
  if (row == nullptr) return Error(ErrorCode::not_found, printable(path_of(folder, entry)) + " is gone");
  const ByteView message = message_in(file, row->range);
  return Bytes(message.begin(), message.end());
}

Result<std::unique_ptr<ByteSource>> MboxStore::read(const std::string& folder, const Entry& entry) {
  if (entry.item.type == ItemType::message) {
    KIN_TRY_ASSIGN(const Bytes message, load(folder, entry));
    return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(content_of(message)));
  }
  return read_file_entry(folders_, folder, entry);
}

std::string MboxStore::path_of(const std::string& folder, const Entry& entry) const {
  const std::string path = folders_.path(folder);
  if (entry.item.type == ItemType::message) return path + ": message " + entry.local;
  const auto is_file = folders_.root_is_file();
  return (is_file && *is_file) || entry.item.name.empty() ? path : path + "/" + entry.item.name;
}

Result<void> MboxStore::apply_jobs(const std::string& folder, const std::vector<Job>& jobs,
                                   std::vector<StoreChange>& changes, std::vector<Result<Entry>>& answers) {
  using Kind = StoreChange::Kind;
  const auto is_add = [](const Job& job) { return job.kind == Kind::add; };
  const bool adds = std::any_of(jobs.begin(), jobs.end(), is_add);
  const bool only_adds = std::all_of(jobs.begin(), jobs.end(), is_add);
  KIN_TRY_ASSIGN(const Spot spot, folders_.spot_of(folder, adds));
  if (adds) KIN_TRY(folders_.make_box(spot.place));
  KIN_TRY_ASSIGN(LockedBox box, LockedBox::open(spot.place, folders_.options()));
  std::optional<Table> table;
  if (auto known = tables_.extract(folder); known && only_adds && same_file(known.mapped().info, box.info()))
    table = std::move(known.mapped().table);
  BoxChange change(folder, spot.place, box, folders_.options());
  KIN_TRY(change.begin(std::move(table)));
  std::vector<std::pair<std::size_t, std::size_t>> made;  // index of the change, number of the answer
  for (const Job& job : jobs) {
    StoreChange& asked = changes[job.index];
    const auto make = [&]() -> Result<std::size_t> {
      if (job.kind == Kind::remove) return change.remove(asked.entry);
      if (job.kind != Kind::add) return change.update(asked.entry, asked.item);
      if (asked.content_path.empty()) return change.add(asked.content, asked.item);
      KIN_TRY_ASSIGN(const Bytes content, read_file(asked.content_path, folders_.options().most_bytes));
      return change.add(content, asked.item);
    };
    const auto number = make();
    if (number) made.emplace_back(job.index, *number);
    if (!number) answers[job.index] = number.error();
  }
  const auto committed = change.commit();
  for (const auto& [index, number] : made)
    answers[index] = committed ? change.answer(number) : Result<Entry>(committed.error());
  struct stat info {};
  if (committed && ::fstat(box.fd(), &info) == 0) remember(folder, info, change.take_table());
  return {};
}

void MboxStore::apply_box(const std::string& folder, const std::vector<Job>& jobs,
                          std::vector<StoreChange>& changes, std::vector<Result<Entry>>& answers) {
  const auto done = apply_jobs(folder, jobs, changes, answers);
  if (done) return;
  const bool is_gone = done.error().code() == ErrorCode::not_found;
  for (const Job& job : jobs) {
    const bool is_as_wanted = is_gone && job.kind == StoreChange::Kind::remove;
    answers[job.index] = is_as_wanted ? changes[job.index].entry : Result<Entry>(done.error());
  }
}

Result<void> MboxStore::load_moved(StoreChange& change) {
  KIN_TRY_ASSIGN(const Bytes message, load(change.folder, change.entry));
  if (marks_of(message) != marks_in(change.entry.item))
    return message_changed(path_of(change.folder, change.entry));
  change.content = content_of(message);
  change.content_path.clear();
  if (const auto known = tables_.find(change.folder); known != tables_.end())
    if (const Row* const row = known->second.table.find(change.entry.local); row != nullptr)
      change.item.name = name_of_sender(row->sender);
  return {};
}

std::vector<Result<Entry>> MboxStore::apply(std::vector<StoreChange> changes) {
  using Kind = StoreChange::Kind;
  const auto lies_below = [](const StoreChange& change) {
    const bool is_root_file = change.item.type == ItemType::file && change.item.name == kRootFileName;
    return (change.item.type != ItemType::message && !is_root_file) || !change.item.folder.empty();
  };
  if (!changes.empty()) folders_.make_root_a_file(std::none_of(changes.begin(), changes.end(), lies_below));
  std::vector<Result<Entry>> answers(changes.size(),
                                     Error(ErrorCode::unsupported, "mbox files cannot hold this"));
  std::map<std::string, std::vector<Job>> boxes, moved_from;
  std::vector<std::size_t> last;  // directories can go when all else is done
  for (std::size_t i = 0; i < changes.size(); ++i) {
    StoreChange& change = changes[i];
    const ItemType type = change.kind == Kind::remove ? change.entry.item.type : change.item.type;
    if (type == ItemType::directory && change.kind == Kind::remove) {
      last.push_back(i);
    } else if (type == ItemType::directory && change.kind != Kind::move) {
      answers[i] = folders_.apply(change);
    } else if (type == ItemType::file) {
      answers[i] = apply_file(folders_, change);
    } else if (type != ItemType::message || (change.kind == Kind::update && change.has_content)) {
      continue;  // a message with other content is another message
    } else if (change.kind == Kind::move && change.folder != change.item.folder) {
      const auto loaded = load_moved(change);
      if (!loaded) answers[i] = loaded.error();
      if (!loaded) continue;
      boxes[change.item.folder].push_back({i, Kind::add});
      moved_from[change.folder].push_back({i, Kind::remove});
    } else {
      boxes[change.kind == Kind::add ? change.item.folder : change.folder].push_back({i, change.kind});
    }
  }
  for (const auto& [folder, jobs] : boxes) apply_box(folder, jobs, changes, answers);
  // Where it went it is on the disk by now: at worst it is in both.
  for (auto& [folder, jobs] : moved_from) {
    std::erase_if(jobs, [&](const Job& job) { return !answers[job.index]; });
    std::vector<Result<Entry>> removed(changes.size(), Error(ErrorCode::busy, "not removed"));
    if (!jobs.empty()) apply_box(folder, jobs, changes, removed);
    for (const Job& job : jobs)
      if (!removed[job.index]) answers[job.index] = removed[job.index].error();
  }
  for (const std::size_t i : last) answers[i] = folders_.apply(changes[i]);
  return answers;
}

}  // namespace
}  // namespace mbox

int detect_mbox(const std::string& root) {
  struct stat info {};
  Fd fd(::open(root.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOATIME));
  if (!fd && errno == EPERM) fd = Fd(::open(root.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd || ::fstat(fd.get(), &info) != 0) return 0;
  Bytes head(mbox::kMostEnvelope);
  if (S_ISREG(info.st_mode)) {
    const auto size = read_up_to_at(fd.get(), head, 0, root);
    return size && as_text(ByteView(head).first(*size)).starts_with(mbox::kEnvelopeStart) ? 85 : 0;
  }
  const auto names = S_ISDIR(info.st_mode) ? list_directory(fd.get(), root) : std::vector<std::string>();
  if (!names) return 0;
  for (const char* const name : {"cur", "new", "tmp"})
    if (std::find(names->begin(), names->end(), name) != names->end()) return 0;
  std::size_t looked_at = 0;
  for (const std::string& name : *names) {
    if (mbox::is_ignored(name)) continue;
    if (++looked_at > mbox::kMostLookedAt) break;
    const auto file = mbox::open_regular({fd.get(), name, name}, O_RDONLY, info);
    if (!file) continue;
    const auto size = read_up_to_at(file->get(), head, 0, name);
    if (size && mbox::begins_as_mbox(as_text(ByteView(head).first(*size)))) return 70;
  }
  return 0;
}

Result<std::unique_ptr<SyncStore>> open_mbox_with(const std::string& root, const mbox::Options& options) {
  std::error_code failed;
  // A link to an mbox is as good as itself, but the lock must be beside the latter.
  std::string path = std::filesystem::absolute(root, failed).string();
  if (!failed) path = std::filesystem::weakly_canonical(path, failed).string();
  if (failed || path.empty()) return Error(ErrorCode::io, printable(root) + ": " + failed.message());
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return Error(ErrorCode::unsupported, printable(path) + " is neither a file nor a directory");
  return std::unique_ptr<SyncStore>(std::make_unique<mbox::MboxStore>(std::move(path), options));
}

Result<std::unique_ptr<SyncStore>> open_mbox(const std::string& root) { return open_mbox_with(root, {}); }

}  // namespace kin::sync
