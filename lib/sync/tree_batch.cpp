#include "lib/sync/tree_batch.h"

#include "lib/sync/store_files.h"
#include "lib/sync/tree_directories.h"

#include <algorithm>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync::tree {
namespace {

using Enter = WorkDirectories::Enter;

// One apply(). Changes of different paths do not depend on each other, but by the directories that they are
// in.
class Batch {
 public:
  Batch(const Root& root, const std::vector<StoreChange>& changes);
  std::vector<Result<Entry>> run();

 private:
  enum class Step { remove_entry, remove_directory, make_directory, write, adjust };
  struct Work {
    Step step = Step::write;
    std::string folder, name, path;
    std::string temporary;       // a name in `folder` that is still to go
    bool is_taken = false;       // `temporary` was content_path
    std::optional<Error> error;  // else
    Entry entry;                 // is the answer
  };
  using Action = Result<void> (Batch::*)(std::size_t);

  Result<void> check(std::size_t i);
  void each(Step step, Action action);
  Result<void> remove_entry(std::size_t i);
  Result<void> remove_directory(std::size_t i);
  Result<void> remove_directory_at(int directory, std::size_t i);
  Result<void> make_directory(std::size_t i);
  Result<void> write(std::size_t i);
  Result<void> write_file(int directory, std::size_t i);
  Result<void> seal(std::size_t i);
  Result<void> install(std::size_t i);
  Result<void> replace(int directory, std::size_t i);
  Result<void> adopt(int directory, std::size_t i);
  Result<void> adjust(std::size_t i);
  void discard(std::size_t i);

  bool is_as_it_was(int directory, const std::string& name, std::size_t i) const;
  Result<std::string> set_aside(int directory, std::size_t i);
  Result<void> drop(int directory, std::size_t i, const std::string& aside);

  const Root& root_;
  const std::vector<StoreChange>& changes_;
  std::vector<Work> works_;
  std::vector<std::size_t> by_path_;
  WorkDirectories directories_;
};

Batch::Batch(const Root& root, const std::vector<StoreChange>& changes)
    : root_(root), changes_(changes), works_(changes.size()), by_path_(changes.size()), directories_(root) {
  using Kind = StoreChange::Kind;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const StoreChange& change = changes[i];
    Work& work = works_[i];
    const bool is_add = change.kind == Kind::add;
    work.folder = is_add ? change.item.folder : change.folder;
    work.name = is_add ? change.item.name : change.entry.local;
    work.path = root.full(join_path(work.folder, work.name));
    const bool is_same_type = !is_add && change.entry.item.type == change.item.type;
    if (change.kind == Kind::remove)
      work.step = change.entry.item.type == ItemType::directory ? Step::remove_directory : Step::remove_entry;
    else if (change.item.type == ItemType::directory)
      work.step = Step::make_directory;
    else if (is_same_type && change.item.type == ItemType::file && !change.has_content)
      work.step = Step::adjust;
  }
  std::iota(by_path_.begin(), by_path_.end(), 0);
  std::stable_sort(by_path_.begin(), by_path_.end(),
                   [&](std::size_t a, std::size_t b) { return works_[a].path < works_[b].path; });
}

std::vector<Result<Entry>> Batch::run() {
  for (std::size_t i = 0; i < works_.size(); ++i)
    if (auto good = check(i); !good) works_[i].error = std::move(good).error();
  each(Step::remove_entry, &Batch::remove_entry);
  each(Step::remove_directory, &Batch::remove_directory);
  each(Step::make_directory, &Batch::make_directory);
  each(Step::write, &Batch::write);
  each(Step::write, &Batch::seal);
  each(Step::write, &Batch::install);
  each(Step::adjust, &Batch::adjust);
  for (std::size_t i = 0; i < works_.size(); ++i) discard(i);
  const Result<void> finished = directories_.finish([&](std::size_t i, const Result<struct stat>& now) {
    if (now)
      works_[i].entry = entry_of(*now, works_[i].folder, works_[i].name);
    else
      works_[i].error = now.error();
  });
  std::vector<Result<Entry>> answers;
  for (Work& work : works_) {
    if (!work.error && !finished) work.error = finished.error();
    if (work.error)
      answers.emplace_back(*std::move(work.error));
    else
      answers.emplace_back(std::move(work.entry));
  }
  return answers;
}

void Batch::each(Step step, Action action) {
  const auto act = [&](std::size_t i) {
    if (works_[i].step != step || works_[i].error) return;
    if (auto done = (this->*action)(i); !done) works_[i].error = std::move(done).error();
  };
  // What is to go goes before the directory that it is in; all else comes after it.
  if (step == Step::remove_directory)
    std::for_each(by_path_.rbegin(), by_path_.rend(), act);
  else
    std::for_each(by_path_.begin(), by_path_.end(), act);
}

Result<void> Batch::check(std::size_t i) {
  const StoreChange& change = changes_[i];
  const Work& work = works_[i];
  const auto refuse = [&](const char* why) {
    return Error(ErrorCode::invalid_argument, printable(work.path) + " " + why);
  };
  Item place;
  place.type = ItemType::file;  // of which a name is one component
  place.folder = work.folder;
  place.name = work.name;
  KIN_TRY(check_item(place));
  const bool is_directory = work.step == Step::make_directory;
  if (is_temporary(work.name) || !fits(is_directory ? join_path(work.folder, work.name) : work.folder))
    return refuse("is a name that is not kept in a tree");
  if (change.kind == StoreChange::Kind::move) return refuse("is to be moved, which only messages are");
  if (change.kind == StoreChange::Kind::remove) return {};
  const ItemType type = change.item.type;
  if (type != ItemType::file && type != ItemType::directory && type != ItemType::symlink)
    return refuse("is of a type that is not kept in a tree");
  place = change.item;
  place.folder = work.folder;
  place.name = work.name;
  KIN_TRY(check_item(place));
  if (type != ItemType::file || work.step != Step::write) return {};
  if (change.kind == StoreChange::Kind::update && !change.has_content)
    return refuse("is to be a file without content");
  if (change.content_path.empty() && change.content.size() != change.item.size)
    return refuse("is to be a file of another size than its content");
  return {};
}

bool Batch::is_as_it_was(int directory, const std::string& name, std::size_t i) const {
  Result<Entry> now = look(directory, works_[i].folder, name, works_[i].path);
  if (!now || now->item.type != changes_[i].entry.item.type) return false;
  if (const auto mode = directories_.mode_before(join_path(works_[i].folder, name)))
    now->fingerprint.modified_ns = *mode;
  return now->fingerprint == changes_[i].entry.fingerprint;
}

// Gives a file or symlink another name, if it is as it was.
Result<std::string> Batch::set_aside(int directory, std::size_t i) {
  const Work& work = works_[i];
  if (!is_as_it_was(directory, work.name, i)) return not_as_it_was(work.path);
  const std::string aside = temporary_name();
  const int failed = rename_to_free_name(directory, work.name, directory, aside);
  if (failed == ENOENT) return not_as_it_was(work.path);
  if (failed != 0) return errno_error("cannot rename", work.path, failed);
  if (is_as_it_was(directory, aside, i)) return aside;
  if (const int stuck = rename_to_free_name(directory, aside, directory, work.name); stuck != 0)
    return errno_error("cannot put back from " + aside, work.path, stuck);
  return not_as_it_was(work.path);
}

// At once, or the directory that it is in would not be empty.
Result<void> Batch::drop(int directory, std::size_t i, const std::string& aside) {
  if (::unlinkat(directory, aside.c_str(), 0) == 0) return {};
  const Error error = errno_error("cannot remove", works_[i].path);
  rename_to_free_name(directory, aside, directory, works_[i].name);
  return error;
}

Result<void> Batch::remove_entry(std::size_t i) {
  Work& work = works_[i];
  work.entry = changes_[i].entry;
  const Result<Fd> directory = directories_.enter(work.folder, Enter::to_remove);
  if (!directory && directory.error().code() == ErrorCode::not_found) return {};
  if (!directory) return directory.error();
  const Result<Entry> now = look(directory->get(), work.folder, work.name, work.path);
  if (!now && now.error().code() == ErrorCode::not_found) return {};
  KIN_TRY_ASSIGN(const std::string aside, set_aside(directory->get(), i));
  return drop(directory->get(), i, aside);
}

Result<void> Batch::remove_directory(std::size_t i) {
  Work& work = works_[i];
  work.entry = changes_[i].entry;
  const Result<Fd> directory = directories_.enter(work.folder, Enter::to_remove);
  if (!directory && directory.error().code() == ErrorCode::not_found) return {};
  if (!directory) return directory.error();
  return remove_directory_at(directory->get(), i);
}

Result<void> Batch::remove_directory_at(int directory, std::size_t i) {
  const Work& work = works_[i];
  if (::unlinkat(directory, work.name.c_str(), AT_REMOVEDIR) == 0) {
    directories_.forget(join_path(work.folder, work.name));
    return {};
  }
  if (errno == ENOENT) return {};
  if (errno == ENOTEMPTY || errno == EEXIST)
    return Error(ErrorCode::busy, printable(work.path) + " is not empty");
  if (errno == ENOTDIR) return not_as_it_was(work.path);
  return errno_error("cannot remove", work.path);
}

// Its mode, and the answer, come when all is done that is to be done in it.
Result<void> Batch::make_directory(std::size_t i) {
  Work& work = works_[i];
  const StoreChange& change = changes_[i];
  KIN_TRY_ASSIGN(const Fd directory, directories_.enter(work.folder, Enter::and_make));
  const bool is_update = change.kind == StoreChange::Kind::update;
  if (is_update && change.entry.item.type == ItemType::directory) {
    if (!is_as_it_was(directory.get(), work.name, i)) return not_as_it_was(work.path);
  } else {
    std::string aside;
    if (is_update) {
      KIN_TRY_ASSIGN(aside, set_aside(directory.get(), i));
    }
    if (::mkdirat(directory.get(), work.name.c_str(), 0700) != 0) {
      const int failed = errno;
      if (is_update) rename_to_free_name(directory.get(), aside, directory.get(), work.name);
      if (failed != EEXIST) return errno_error("cannot make directory", work.path, failed);
      const Result<Entry> now = look(directory.get(), work.folder, work.name, work.path);
      if (is_update || !now || now->item.type != ItemType::directory) return not_as_it_was(work.path);
    }
    if (is_update) KIN_TRY(drop(directory.get(), i, aside));
  }
  directories_.will_have(join_path(work.folder, work.name), change.item.mode, i);
  return {};
}

Result<void> Batch::write(std::size_t i) {
  Work& work = works_[i];
  const Item& item = changes_[i].item;
  KIN_TRY_ASSIGN(const Fd directory, directories_.enter(work.folder, Enter::and_make));
  work.temporary = temporary_name();
  if (item.type == ItemType::file) return write_file(directory.get(), i);
  if (::symlinkat(item.target.c_str(), directory.get(), work.temporary.c_str()) != 0)
    return errno_error("cannot make link", work.path);
  return {};
}

Result<void> Batch::write_file(int directory, std::size_t i) {
  Work& work = works_[i];
  const StoreChange& change = changes_[i];
  if (!change.content_path.empty()) {
    struct stat info {};
    if (::lstat(change.content_path.c_str(), &info) != 0)
      return errno_error("cannot look at", change.content_path);
    if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) != change.item.size)
      return Error(ErrorCode::corrupt,
                   printable(change.content_path) + " is not the content that it should be");
    // With another name somewhere, it could change by that one.
    work.is_taken = change.may_take && info.st_nlink == 1 &&
                    rename_to_free_name(AT_FDCWD, change.content_path, directory, work.temporary) == 0;
    if (work.is_taken) return {};
  }
  Fd to(::openat(directory, work.temporary.c_str(), kMakeFile, 0600));
  if (!to) return errno_error("cannot make a file for", work.path);
  KIN_TRY_ASSIGN(const std::uint64_t copied, write_content(change, to.get(), work.path));
  if (copied != change.item.size)
    return Error(ErrorCode::corrupt, printable(change.content_path) + " changed while it was read");
  return to.close(work.path);
}

// All content is written by now, so that the disk can take it in one go.
Result<void> Batch::seal(std::size_t i) {
  Work& work = works_[i];
  const Item& item = changes_[i].item;
  KIN_TRY_ASSIGN(const Fd directory, directories_.enter(work.folder, Enter::existing));
  // From now: once others see it they may change it, and that must not look like our doing.
  KIN_TRY_ASSIGN(work.entry,
                 item.type == ItemType::symlink
                     ? look(directory.get(), work.folder, work.temporary, work.path)
                     : set_metadata(directory.get(), work.folder, work.temporary, work.path, item, {}));
  work.entry.local = work.entry.item.name = work.name;
  return {};
}

Result<void> Batch::install(std::size_t i) {
  Work& work = works_[i];
  const StoreChange& change = changes_[i];
  KIN_TRY_ASSIGN(const Fd directory, directories_.enter(work.folder, Enter::existing));
  const bool is_update = change.kind == StoreChange::Kind::update;
  if (is_update && change.entry.item.type != ItemType::directory) return replace(directory.get(), i);
  if (is_update) KIN_TRY(remove_directory_at(directory.get(), i));
  const int failed = rename_to_free_name(directory.get(), work.temporary, directory.get(), work.name);
  if (failed == EEXIST) return is_update ? not_as_it_was(work.path) : adopt(directory.get(), i);
  if (failed != 0) return errno_error("cannot rename to", work.path, failed);
  work.temporary.clear();
  return {};
}

Result<void> Batch::replace(int directory, std::size_t i) {
  Work& work = works_[i];
  const char* const temporary = work.temporary.c_str();
  const char* const name = work.name.c_str();
  if (!is_as_it_was(directory, work.name, i)) return not_as_it_was(work.path);
  if (::renameat2(directory, temporary, directory, name, RENAME_EXCHANGE) == 0) {
    if (is_as_it_was(directory, work.temporary, i)) {
      work.is_taken = false;  // the old content has that name now
      return {};
    }
    if (::renameat2(directory, temporary, directory, name, RENAME_EXCHANGE) != 0)
      return errno_error("cannot put back from " + std::exchange(work.temporary, ""), work.path);
    return not_as_it_was(work.path);
  }
  if (errno == ENOENT) return not_as_it_was(work.path);
  // Not every file system can exchange names.
  if ((errno != EINVAL && errno != ENOSYS) || ::renameat(directory, temporary, directory, name) != 0)
    return errno_error("cannot rename to", work.path);
  work.temporary.clear();
  return {};
}

// Something has the name of what is to be added: good if it is the same.
Result<void> Batch::adopt(int directory, std::size_t i) {
  Work& work = works_[i];
  const Item& item = changes_[i].item;
  KIN_TRY_ASSIGN(Entry now, look(directory, work.folder, work.name, work.path));
  if (now.item.type != item.type || now.item.target != item.target || now.item.size != work.entry.item.size)
    return not_as_it_was(work.path);
  if (item.type == ItemType::symlink) {
    work.entry = std::move(now);
    return {};
  }
  const Fd theirs(::openat(directory, work.name.c_str(), kOpenFile));
  const Fd ours(::openat(directory, work.temporary.c_str(), kOpenFile));
  if (!theirs || !ours) return errno_error("cannot open", work.path);
  FileView their_view(theirs.get(), work.path), our_view(ours.get(), work.path);
  KIN_TRY_ASSIGN(const bool is_same, same_bytes(their_view, our_view));
  if (!is_same) return not_as_it_was(work.path);
  KIN_TRY_ASSIGN(work.entry,
                 set_metadata(directory, work.folder, work.name, work.path, item, now.fingerprint));
  return {};
}

Result<void> Batch::adjust(std::size_t i) {
  Work& work = works_[i];
  const Result<Fd> directory = root_.open(work.folder);
  if (!directory && directory.error().code() == ErrorCode::not_found) return not_as_it_was(work.path);
  if (!directory) return directory.error();
  KIN_TRY_ASSIGN(work.entry, set_metadata(directory->get(), work.folder, work.name, work.path,
                                          changes_[i].item, changes_[i].entry.fingerprint));
  return {};
}

void Batch::discard(std::size_t i) {
  const Work& work = works_[i];
  if (work.temporary.empty()) return;
  const Result<Fd> directory = root_.open(work.folder);
  if (!directory) return;  // it is old one day, and goes then
  if (work.is_taken &&
      rename_to_free_name(directory->get(), work.temporary, AT_FDCWD, changes_[i].content_path) == 0)
    return;
  ::unlinkat(directory->get(), work.temporary.c_str(), 0);
}

}  // namespace

std::vector<Result<Entry>> apply_changes(const Root& root, const std::vector<StoreChange>& changes) {
  return Batch(root, changes).run();
}

}  // namespace kin::sync::tree
