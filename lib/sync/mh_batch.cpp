#include "lib/sync/mh_batch.h"

#include "lib/sync/mh_sequences.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync::mh {
namespace {

constexpr std::size_t kMostFoldersAtOnce = 100;  // each has two descriptors open

// A folder, as a batch of changes has to do with it.
struct Folder {
  std::string path;
  Fd directory;
  std::optional<Error> error;  // why nothing can be done here
  bool gets_messages = false;
  bool gets_sequences = false;
  std::uint32_t highest = 0;
  std::optional<MhSequenceFile> file;  // there, if there is no error
  MhSequences::Changes marks;
  std::optional<std::vector<Seen>> messages;  // once someone wants to know
  bool is_touched = false;
};

struct Step {
  explicit Step(StoreChange& its_change) : change(its_change) {}

  StoreChange& change;
  std::optional<Error> error;
  Folder* from = nullptr;  // where the message is; null for one to be added
  Folder* to = nullptr;    // where it will be; null for one to be removed
  std::string temporary;   // of the content, in `to`
  bool is_taken = false;   // was at content_path
  bool is_copied = false;  // to `temporary`, since the two folders are on different file systems
  bool is_renamed = false;
  bool is_gone = false;      // the folder of what is to be removed
  std::uint32_t number = 0;  // in `to`, or else in `from`
  Fingerprint fingerprint;

  bool is_good() const { return !error; }
  bool is_message() const { return change.item.type == ItemType::message; }
  bool is_removal() const { return is_message() && to == nullptr; }
  bool is_new_in_folder() const { return is_message() && to != nullptr && from != to; }
  MhMarks marks() const { return {change.item.flags, change.item.words}; }
};

// Some changes, made together: all contents are on the disk before the first gets a number, each file of
// sequences is written once, and each directory is synced once.
class Batch {
 public:
  Batch(const Directories& directories, std::span<StoreChange> changes, std::chrono::milliseconds lock_wait)
      : directories_(directories), steps_(changes.begin(), changes.end()), lock_wait_(lock_wait) {}

  std::vector<Result<Entry>> run() {
    for_each_good(&Batch::prepare);
    for (auto& [name, folder] : folders_)
      collect_error(folder, directories_.open(name, folder.gets_messages));
    spread_folder_errors();
    for_each_good(&Batch::stage_content);
    for_each_good(&Batch::sync_content);
    lock_folders();
    spread_folder_errors();
    for_each_good(&Batch::act);
    finish_moves();
    for (Step& step : steps_) discard_content(step);
    save_folders();
    spread_folder_errors();
    remove_directories();
    std::vector<Result<Entry>> answers;
    for (Step& step : steps_) answers.push_back(answer(step));
    return answers;
  }

 private:
  void for_each_good(Result<void> (Batch::*make)(Step&)) {
    for (Step& step : steps_) {
      if (!step.is_good()) continue;
      if (auto made = (this->*make)(step); !made) step.error = std::move(made).error();
    }
  }

  void collect_error(Folder& folder, Result<Fd> opened) {
    if (opened)
      folder.directory = *std::move(opened);
    else
      folder.error = std::move(opened).error();
  }

  void spread_folder_errors() {
    for (Step& step : steps_)
      for (const Folder* const folder : {step.from, step.to}) {
        if (!step.is_good() || folder == nullptr || !folder->error) continue;
        step.is_gone = step.is_removal() && folder->error->code() == ErrorCode::not_found;
        if (!step.is_gone) step.error = folder->error;
      }
  }

  Result<void> prepare(Step& step) {
    const StoreChange& change = step.change;
    KIN_TRY(check_item(change.item));
    const bool is_add = change.kind == StoreChange::Kind::add,
               is_remove = change.kind == StoreChange::Kind::remove;
    if (change.item.type == ItemType::directory && change.item.folder.empty()) {
      if (is_remove) return check_folder(change.item.name);
      made_directories_.insert_or_assign(change.item.name, &step);
      if (is_add) KIN_TRY(directories_.open(change.item.name, true));
      return {};
    }
    if (!step.is_message())
      return Error(ErrorCode::unsupported,
                   "an MH folder has nothing but messages: " + printable(change.item.name));
    if (change.has_content && !is_add)
      return Error(ErrorCode::unsupported, "a message of an MH folder does not change its content");
    if (!is_add) {
      step.number = mh_number(change.entry.local);
      if (step.number == 0)
        return Error(ErrorCode::invalid_argument,
                     "no message of an MH folder: " + printable(change.entry.local));
      step.from = &folder_of(change.folder);
    }
    if (!is_remove) {
      step.to = change.kind == StoreChange::Kind::update ? step.from : &folder_of(change.item.folder);
      step.to->gets_messages |= step.is_new_in_folder();
      MhSequences of_this_alone(directories_.profile().unseen);
      of_this_alone.change({{1, step.marks()}});
      step.to->gets_sequences |= !of_this_alone.text().empty();
    }
    return {};
  }

  Folder& folder_of(const std::string& name) {
    Folder& folder = folders_[name];
    folder.path = directories_.path(name);
    return folder;
  }

  Result<void> stage_content(Step& step) {
    if (step.from != nullptr || step.to == nullptr) return {};
    const StoreChange& change = step.change;
    const int directory = step.to->directory.get();
    KIN_TRY_ASSIGN(MhTemporary temporary, make_mh_temporary(directory, step.to->path));
    step.temporary = temporary.name;
    step.is_taken = change.may_take && !change.content_path.empty() &&
                    ::renameat(AT_FDCWD, change.content_path.c_str(), directory, temporary.name.c_str()) == 0;
    if (step.is_taken) {
      temporary.fd = Fd(::openat(directory, temporary.name.c_str(), kOpenFile));
      if (!temporary.fd || ::fchmod(temporary.fd.get(), 0600) != 0)
        return errno_error("cannot open", step.to->path);
    } else {
      KIN_TRY(write_content(change, temporary.fd.get(), step.to->path));
    }
    if (change.item.time == Timestamp()) return {};
    const timespec time{change.item.time.seconds, static_cast<long>(change.item.time.nanoseconds)};
    const timespec times[] = {time, time};
    if (::futimens(temporary.fd.get(), times) != 0)
      return errno_error("cannot set the time of a file in", step.to->path);
    return {};
  }

  // Opened again: a batch may have more messages than a process may have descriptors.
  Result<void> sync_content(Step& step) {
    if (step.temporary.empty()) return {};
    const Fd fd(::openat(step.to->directory.get(), step.temporary.c_str(), kOpenFile));
    if (!fd || ::fsync(fd.get()) != 0) return errno_error("cannot write a file in", step.to->path);
    return {};
  }

  // In the order of names, so that two that do this do not wait for each other.
  void lock_folders() {
    using Use = MhSequenceFile::Use;
    const auto deadline = MhSequenceFile::Clock::now() + lock_wait_;
    for (auto& [name, folder] : folders_) {
      if (folder.error) continue;
      const int directory = folder.directory.get();
      auto file = MhSequenceFile::open(directory, folder.path,
                                       folder.gets_sequences ? Use::make_and_change : Use::change, deadline,
                                       directories_.profile());
      Result<void> listed;
      if (file && folder.gets_messages)
        listed = for_each_name(directory, folder.path,
                               [&, highest = &folder.highest](std::string_view entry, int) {
                                 *highest = std::max(*highest, mh_number(entry));
                                 return true;
                               });
      if (!file)
        folder.error = std::move(file).error();
      else if (!listed)
        folder.error = std::move(listed).error();
      else
        folder.file = *std::move(file);
    }
  }

  Result<void> act(Step& step) {
    if (!step.is_message() || step.is_gone) return {};
    std::string name = step.temporary, old_path;
    if (step.from != nullptr) {
      name = std::to_string(step.number);
      old_path = step.from->path + "/" + name;
      KIN_TRY_ASSIGN(const std::optional<Fingerprint> found, look_at(*step.from, name));
      if (!found && step.is_removal()) {
        KIN_TRY_ASSIGN(const bool is_renumbered, has_file(*step.from, step.change.entry.fingerprint));
        return is_renumbered ? not_as_it_was(old_path) : Result<void>();
      }
      if (found != step.change.entry.fingerprint) return not_as_it_was(old_path);
      step.fingerprint = *found;
    }
    if (step.is_removal()) {
      if (::unlinkat(step.from->directory.get(), name.c_str(), 0) != 0)
        return errno_error("cannot remove", old_path);
      set_marks(*step.from, step.number, std::nullopt);
    } else if (step.from == step.to) {
      set_marks(*step.to, step.number, step.marks());
    } else {
      KIN_TRY_ASSIGN(step.number, give_number(step, name));
      const std::string number = std::to_string(step.number);
      KIN_TRY_ASSIGN(const std::optional<Fingerprint> found, look_at(*step.to, number));
      if (!found) return not_as_it_was(step.to->path + "/" + number);
      step.fingerprint = *found;
      // Another file may have got the old number just before.
      if (step.from != nullptr && !step.is_renamed && !step.is_copied &&
          step.fingerprint != step.change.entry.fingerprint) {
        ::unlinkat(step.to->directory.get(), number.c_str(), 0);
        return not_as_it_was(old_path);
      }
      set_marks(*step.to, step.number, step.marks());
    }
    return {};
  }

  static void set_marks(Folder& folder, std::uint32_t number, std::optional<MhMarks> marks) {
    folder.is_touched = true;
    folder.marks.insert_or_assign(number, std::move(marks));
  }

  // Nothing, if nothing is there; busy, if it is no file.
  static Result<std::optional<Fingerprint>> look_at(const Folder& folder, const std::string& name) {
    const std::string path = folder.path + "/" + name;
    struct stat info {};
    if (::fstatat(folder.directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return std::optional<Fingerprint>();
      return errno_error("cannot look at", path);
    }
    if (!S_ISREG(info.st_mode)) return not_as_it_was(path);
    return std::optional(fingerprint_of(info));
  }

  // Under any number: one that is gone may be that of a message that another program has renumbered, which is
  // not gone.
  static Result<bool> has_file(Folder& folder, const Fingerprint& fingerprint) {
    if (!folder.messages) {
      KIN_TRY_ASSIGN(folder.messages, look_at_messages(folder.directory.get(), folder.path));
    }
    return std::any_of(folder.messages->begin(), folder.messages->end(),
                       [&](const Seen& seen) { return seen.fingerprint == fingerprint; });
  }

  // Of a message on another file system. On the disk when this returns.
  static Result<void> copy_content(Step& step, const std::string& name) {
    const std::string path = step.from->path + "/" + name;
    const Fd file(::openat(step.from->directory.get(), name.c_str(), kOpenFile));
    if (!file && (errno == ENOENT || errno == ELOOP)) return not_as_it_was(path);
    if (!file) return errno_error("cannot open", path);
    KIN_TRY_ASSIGN(const MhTemporary temporary, make_mh_temporary(step.to->directory.get(), step.to->path));
    step.temporary = temporary.name;
    step.is_copied = true;
    KIN_TRY(copy_file(file.get(), step.change.entry.fingerprint, temporary.fd.get(), path));
    return {};
  }

  // Others may add messages at the same time, and not all of them ask for the lock.
  Result<std::uint32_t> give_number(Step& step, std::string name) {
    constexpr int kMostTries = 10'000;
    Folder& to = *step.to;
    const int target = to.directory.get();
    int source = (step.from != nullptr ? step.from : step.to)->directory.get();
    for (int tries = 0; tries < kMostTries && to.highest < kMostMhNumber; ++tries) {
      const std::string number = std::to_string(++to.highest);
      if (::linkat(source, name.c_str(), target, number.c_str(), 0) == 0) return to.highest;
      // Not every file system has links, and not every file may be linked to.
      const bool may_rename = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
      if (may_rename && ::renameat2(source, name.c_str(), target, number.c_str(), RENAME_NOREPLACE) == 0) {
        if (step.is_copied)
          step.temporary.clear();
        else
          step.is_renamed = true;
        return to.highest;
      }
      if (errno == EXDEV && step.from != nullptr && !step.is_copied) {
        KIN_TRY(copy_content(step, name));
        name = step.temporary;
        source = target;
        --to.highest;
        continue;
      }
      if (errno != EEXIST) return errno_error("cannot put a message in", to.path);
    }
    return Error(ErrorCode::io, fmt::format("{} has no number left for a message", printable(to.path)));
  }

  // The new name is on the disk before the old one goes.
  void finish_moves() {
    std::map<Folder*, std::optional<Error>> failed;  // to sync
    for (Step& step : steps_) {
      if (!step.is_good() || !step.is_new_in_folder() || step.from == nullptr) continue;
      const auto [known, is_first] = failed.try_emplace(step.to);
      if (is_first)
        if (auto synced = sync_directory(step.to->directory.get(), step.to->path); !synced)
          known->second = std::move(synced).error();
      const std::string old = step.change.entry.local;
      std::optional<Error> error = known->second;
      if (!error && !step.is_renamed && ::unlinkat(step.from->directory.get(), old.c_str(), 0) != 0 &&
          errno != ENOENT)  // someone was faster; better twice than not at all
        error = errno_error("cannot move", step.from->path + "/" + old);
      if (!error || step.is_renamed) {
        set_marks(*step.from, mh_number(old), std::nullopt);
      } else {
        step.error = std::move(error);
        ::unlinkat(step.to->directory.get(), std::to_string(step.number).c_str(), 0);
        set_marks(*step.to, step.number, std::nullopt);
      }
    }
  }

  // The content is the caller's again if it has not become a message.
  static void discard_content(Step& step) {
    if (step.temporary.empty() || step.is_renamed) return;
    const int directory = step.to->directory.get();
    const bool is_given_back =
        step.error && step.is_taken &&
        ::renameat(directory, step.temporary.c_str(), AT_FDCWD, step.change.content_path.c_str()) == 0;
    if (!is_given_back) ::unlinkat(directory, step.temporary.c_str(), 0);
    step.to->is_touched = true;
  }

  void save_folders() {
    for (auto& [name, folder] : folders_) {
      if (folder.error || !folder.is_touched) continue;
      if (auto changed = folder.file->change(folder.directory.get(), folder.marks); !changed) {
        // What has a number keeps it: the answer says which flags it has.
        for (Step& step : steps_)
          if (step.is_good() && step.is_message() && step.from == &folder && step.to == &folder)
            step.error = changed.error();
      }
      if (auto synced = sync_directory(folder.directory.get(), folder.path); !synced)
        folder.error = std::move(synced).error();
    }
  }

  // Those below others first, and those that a later change wants are not removed at all.
  void remove_directories() {
    std::vector<Step*> removed;
    for (Step& step : steps_) {
      if (!step.is_good() || step.is_message() || step.change.kind != StoreChange::Kind::remove) continue;
      const auto made = made_directories_.find(step.change.item.name);
      if (made == made_directories_.end() || made->second < &step) removed.push_back(&step);
    }
    std::sort(removed.begin(), removed.end(),
              [](const Step* a, const Step* b) { return a->change.item.name > b->change.item.name; });
    for (Step* const step : removed)
      if (auto done = directories_.remove(step->change.item.name); !done)
        step->error = std::move(done).error();
  }

  static Result<Entry> answer(Step& step) {
    if (step.error) return *std::move(step.error);
    Entry entry = std::move(step.change.entry);
    if (!step.is_message()) {
      if (step.change.kind == StoreChange::Kind::remove) return entry;
      entry.local = step.change.item.name;
      entry.item = std::move(step.change.item);
      return entry;
    }
    if (step.is_removal()) return entry;
    if (step.is_new_in_folder()) {
      entry.item = std::move(step.change.item);
      entry.item.name.clear();
    }
    describe(step.number, step.fingerprint, step.to->file->sequences(), entry);
    return entry;
  }

  const Directories& directories_;
  std::vector<Step> steps_;
  const std::chrono::milliseconds lock_wait_;
  std::map<std::string, Folder> folders_;
  std::map<std::string, const Step*> made_directories_;  // the last change that wants each
};

}  // namespace

std::vector<Result<Entry>> apply_changes(const Directories& directories, std::span<StoreChange> changes,
                                         std::chrono::milliseconds lock_wait) {
  std::vector<Result<Entry>> answers;
  for (std::size_t start = 0, end = 0; start < changes.size(); start = end) {
    std::set<std::string> folders;
    for (; end < changes.size() && folders.size() < kMostFoldersAtOnce; ++end) {
      folders.insert(changes[end].folder);
      folders.insert(changes[end].item.folder);
    }
    for (auto& answer : Batch(directories, changes.subspan(start, end - start), lock_wait).run())
      answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace kin::sync::mh
