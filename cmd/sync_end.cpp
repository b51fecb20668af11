#include "cmd/sync_end.h"

#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "store/rocks_table.h"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::cmd {
namespace {

constexpr std::int64_t kTrashDays = 30, kDaySeconds = 86'400;

std::string state_place() {
  const char* const place = std::getenv("XDG_STATE_HOME");
  if (place != nullptr && *place != '\0') return std::string(place) + "/kin/sync";
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr && *home != '\0' ? home : "/root") + "/.local/state/kin/sync";
}

// Of this machine and this directory: a state that was copied to another is known by it.
// Of mbox the directory that it is in counts: a mailbox is written anew by many programs, and may not be
// there.
std::string identity_of(const std::string& root, const sync::StoreKind& kind) {
  const bool is_mbox = std::string_view(kind.name) == "mbox";
  const std::string place = is_mbox ? std::filesystem::path(root).parent_path().string() : root;
  std::string machine;
  if (const auto bytes = read_file("/etc/machine-id", 4096)) machine = first_line(as_text(*bytes));
  struct stat info {};
  const bool is_there = ::stat(place.c_str(), &info) == 0;
  return machine + ":" + (is_there ? std::to_string(info.st_ino) : "");
}

}  // namespace

SyncEnd::SyncEnd(std::string root, std::string directory)
    : root_(std::move(root)),
      directory_(std::move(directory)),
      trash_(directory_ + "/trash"),
      incoming_(directory_ + "/incoming") {}

Result<std::unique_ptr<SyncEnd>> SyncEnd::open(Context& context, const SyncEndOptions& options) {
  std::error_code failed;
  std::string root = std::filesystem::absolute(options.root, failed).lexically_normal().string();
  if (const auto real = std::filesystem::canonical(root, failed); !failed) root = real.string();
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  struct stat info {};
  const bool is_missing = ::stat(root.c_str(), &info) != 0;
  if (is_missing) {
    if (errno != ENOENT || options.must_exist) return errno_error("cannot look at", root);
    // Whoever mistypes a name should not get a new store in the midst of nowhere.
    const std::string parent = std::filesystem::path(root).parent_path().string();
    if (::stat(parent.c_str(), &info) != 0) return errno_error("cannot look at", parent);
  }
  const bool is_open =
      options.kind.empty() &&
      (is_missing || (std::filesystem::is_empty(root, failed) && !failed && S_ISDIR(info.st_mode)));
  const std::string name = is_open ? options.kind_if_empty : options.kind;
  const sync::StoreKind* const kind =
      name.empty() ? &sync::detect_store_kind(root) : sync::find_store_kind(name);
  if (kind == nullptr)
    return Error(ErrorCode::invalid_argument, "there is no kind of store named " + printable(name));
  // What is known of it as one kind is of no use to it as another.
  const std::string directory = (options.state.empty() ? state_place() : options.state) + "/" +
                                hex(ByteView(hash(as_bytes(root + '\n' + kind->name))).first(12));
  std::unique_ptr<SyncEnd> end(new SyncEnd(root, directory));
  end->kind_is_open_ = is_open && options.kind_if_empty.empty();
  end->kind_ = kind;
  end->must_see_all_ = options.must_see_all;
  KIN_TRY_ASSIGN(end->table_, store::open_rocks_table(directory + "/table"));
  KIN_TRY_ASSIGN(const std::uint64_t known_items, sync::Replica::known_items(*end->table_));
  if (is_missing && known_items > 0)
    return Error(ErrorCode::not_found,
                 printable(root) + " is not there, though it had " + counted(known_items, "item") +
                     ": is its disk mounted? (to begin anew, delete " + printable(directory) + ")");
  // Of mbox it may be a file: the first message tells.
  end->made_root_ = is_missing && std::string_view(kind->name) != "mbox";
  if (end->made_root_ && ::mkdir(root.c_str(), 0700) != 0) return errno_error("cannot make", root);
  KIN_TRY_ASSIGN(auto store, end->kind_->open(root));
  KIN_TRY_ASSIGN(end->replica_, sync::Replica::open(*end->table_, identity_of(root, *kind)));
  KIN_TRY_ASSIGN(end->store_, sync::MountedStore::open(std::move(store), root, *end->replica_));
  if (end->replica_->was_copied())
    context.warn(printable(root) +
                 " is not the directory that it was: it takes part as a new one, of which nothing is known");
  SyncEnd* const self = end.get();
  end->bases_ = std::make_unique<sync::BaseFinder>(*end->replica_, [self]() -> FeatureStore* {
    store::FeatureIndexLimits limits;
    limits.memory_bytes = 12 << 20;
    limits.filter_bytes = 32 << 20;
    auto features = store::FeatureIndex::open(self->directory_ + "/features", limits);
    if (!features) return nullptr;  // worse bases, and nothing else
    self->features_ = *std::move(features);
    return self->features_.get();
  });
  end->trash_.remove_older_than(kTrashDays * kDaySeconds);
  KIN_TRY(end->forget_old_trash());
  end->incoming_.remove_older_than(kTrashDays * kDaySeconds);
  return end;
}

// What is known of contents that are no longer in the trash.
Result<void> SyncEnd::forget_old_trash() {
  std::vector<Bytes> old;
  KIN_TRY(replica_->for_each_note(as_bytes("t"), [&](ByteView key, ByteView value) -> Result<void> {
    WireReader in(value);
    if (in.signed_varint() < now().seconds - kTrashDays * kDaySeconds)
      old.emplace_back(key.begin(), key.end());
    return {};
  }));
  for (const Bytes& key : old) replica_->set_note(key, std::nullopt);
  return {};
}

void SyncEnd::skip(Context& context, const std::string& what, const Error& error) {
  ++skipped_;
  context.warn(printable(what) + ": " + error.message());
}

Result<sync::ScanCounts> SyncEnd::scan(Context& context, const std::function<void()>& on_progress) {
  sync::ScanObserver observer;
  observer.on_progress = [&](const std::string& folder, std::uint64_t entries) {
    if (on_progress) on_progress();
    if (context.shows_progress())
      context.progress(
          fmt::format("looking through {}: {}  {}", printable(root_), grouped(entries), printable(folder)));
  };
  observer.on_skipped = [&](const std::string& what, const Error& error) { skip(context, what, error); };
  observer.on_content = [&](const ObjectId& object, ByteView content) {
    return bases_->add(object, content);
  };
  // Another directory, with nothing in it, is a disk that is not mounted, and no wish to delete all.
  std::error_code failed;
  if (replica_->was_copied() && replica_->live_items() > 0 && std::filesystem::is_empty(root_, failed) &&
      !failed)
    return Error(
        ErrorCode::not_found,
        printable(root_) +
            " is another directory than it was, and empty: is its disk mounted? (to begin anew, delete " +
            printable(directory_) + ")");
  if (replica_->was_copied()) KIN_TRY(replica_->start_anew(as_bytes("t")));
  auto counts = sync::scan_store(*store_, kind_->is_mail, *replica_, observer, context.stop());
  context.progress("");
  if (counts) KIN_TRY(store_->remember());
  // What was known of a file or directory is kept. Of one that never could be read nothing is, so a mirror
  // would not have it.
  if (counts && must_see_all_ && !counts->never_seen.empty())
    return Error(ErrorCode::io,
                 fmt::format("{} cannot be read, so a mirror would delete what is there at the other end",
                             printable(counts->never_seen)));
  return counts;
}

void SyncEnd::take_back() {
  if (made_root_) ::rmdir(root_.c_str());
}

void SyncEnd::finish() {
  if (features_) features_->commit("contents");
}

}  // namespace kin::cmd
