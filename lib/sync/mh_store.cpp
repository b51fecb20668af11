// The kind "mh": a directory per folder, a file per message whose name is a number, and .mh_sequences beside
// them.
//
// Numbers are local: `folder -pack` renumbers all. So a message is known by its content, and what comes gets
// the next number. What the sequences say is only true of the numbers of that moment: a scan looks at all
// files of a folder while it holds the lock of .mh_sequences, and a change takes that lock before a message
// gets or loses its number. A message thus never shows up without its flags, and is not put anywhere if the
// lock is not to be had.
#include "lib/sync/mh_batch.h"
#include "lib/sync/mh_folders.h"
#include "lib/sync/mh_sequences.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {

Result<std::unique_ptr<SyncStore>> open_mh(const std::string& root);
// For tests, which do not want to wait.
Result<std::unique_ptr<SyncStore>> open_mh_waiting(const std::string& root,
                                                   std::chrono::milliseconds lock_wait,
                                                   const MhProfile& profile = {});

namespace mh {
namespace {

constexpr std::chrono::milliseconds kLockWait{5000};

class MhStore : public SyncStore {
 public:
  MhStore(std::string root, std::chrono::milliseconds lock_wait, const MhProfile& profile)
      : directories_(std::move(root), profile), lock_wait_(lock_wait) {}

  const char* kind() const override { return "mh"; }

  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override {
    std::vector<std::string> out;
    KIN_TRY(directories_.walk(
        [&](const Directories::Look& look) {
          if (!look.folder.empty() || look.has_messages) out.push_back(look.folder);
        },
        on_skipped));
    std::sort(out.begin(), out.end());
    return out;
  }

  Result<void> scan(const std::string& folder, const OnEntry& on_entry,
                    const OnSkipped& on_skipped) override {
    const std::string path = directories_.path(folder);
    KIN_TRY_ASSIGN(const Fd directory, directories_.open(folder, false));
    std::vector<Seen> messages;
    MhSequences sequences;
    {
      const auto deadline = MhSequenceFile::Clock::now() + lock_wait_;
      KIN_TRY_ASSIGN(const MhSequenceFile file,
                     MhSequenceFile::open(directory.get(), path, MhSequenceFile::Use::read, deadline,
                                          directories_.profile()));
      KIN_TRY_ASSIGN(messages, look_until_stable(directory.get(), path));
      sequences = file.sequences();
    }
    for (const Seen& seen : messages) {
      if (seen.state != Seen::State::good) {
        const std::string name = std::to_string(seen.number);
        on_skipped(name, why_skipped(seen.state, path + "/" + name));
        continue;
      }
      Entry entry;
      entry.item.folder = folder;
      describe(seen.number, seen.fingerprint, sequences, entry);
      KIN_TRY(on_entry(std::move(entry)));
    }
    return {};
  }

  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override {
    const std::string path = path_of(folder, entry);
    if (mh_number(entry.local) == 0) return errno_error("cannot open", path, ENOENT);
    KIN_TRY_ASSIGN(const Fd directory, directories_.open(folder, false));
    Fd fd(::openat(directory.get(), entry.local.c_str(), kOpenFile));
    if (!fd && errno == ELOOP) return not_as_it_was(path);
    if (!fd) return errno_error("cannot open", path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error("cannot look at", path);
    if (!S_ISREG(info.st_mode) || fingerprint_of(info) != entry.fingerprint) return not_as_it_was(path);
    return file_source(std::move(fd), path, entry.fingerprint);
  }

  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override {
    remove_stale_files();
    return apply_changes(directories_, changes, lock_wait_);
  }

  std::string path_of(const std::string& folder, const Entry& entry) const override {
    return directories_.path(folder) + "/" + entry.local;
  }

 private:
  static Error why_skipped(Seen::State state, const std::string& path) {
    if (state == Seen::State::gone) return not_as_it_was(path);
    if (state == Seen::State::not_regular)
      return Error(ErrorCode::unsupported, fmt::format("{} is not a regular file", printable(path)));
    return errno_error("cannot read", path, EACCES);
  }

  void remove_stale_files() {
    if (std::exchange(removed_stale_files_, true)) return;
    // What cannot be removed harms no one.
    static_cast<void>(directories_.walk(
        [](const Directories::Look& look) {
          for (const std::string& name : look.stale) ::unlinkat(look.directory, name.c_str(), 0);
        },
        [](const std::string&, const Error&) {}));
  }

  const Directories directories_;
  const std::chrono::milliseconds lock_wait_;
  bool removed_stale_files_ = false;
};

}  // namespace
}  // namespace mh

Result<std::unique_ptr<SyncStore>> open_mh_waiting(const std::string& root,
                                                   std::chrono::milliseconds lock_wait,
                                                   const MhProfile& profile) {
  struct stat info {};
  if (::stat(root.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    return errno_error("cannot open", root, ENOTDIR);
  return std::unique_ptr<SyncStore>(new mh::MhStore(root, lock_wait, profile));
}

Result<std::unique_ptr<SyncStore>> open_mh(const std::string& root) {
  return open_mh_waiting(root, mh::kLockWait, MhProfile::load());
}

}  // namespace kin::sync
