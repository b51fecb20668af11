// Changes: makes changes to a Maildir.
//
// Messages are written to tmp/ and synced, many at a time; then renamed to where they are seen, in order;
// then each directory is synced once. A crash leaves files in tmp/, which we know by their names and remove
// when they are old. Between folders on different file systems a message is copied through tmp/ as well, and
// is on the disk in its new folder before it goes from the old one: a crash leaves it in one of them, or in
// both.
//
// Where no name can have a colon (FAT, NTFS, memory cards of Android) ';' or '!' is before the flags, as
// isync has it: the one that the names in the folder have, or else those of the root, or else ';'. That is
// found out where a colon is refused: what the names of one folder have is no reason to have it in another.
#pragma once

#include "lib/sync/maildir_entries.h"
#include "lib/sync/maildir_folder.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/sync_store.h"

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kin::sync::maildir {

class Changes {
 public:
  // Both must outlive it.
  Changes(const std::string& root, Listings& listings) : root_(root), listings_(listings) {}

  // As SyncStore::apply().
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes);

 private:
  // A folder that changes are made in, until the next barrier.
  struct InUse {
    std::string name;
    Folder folder;
    Keywords keywords;
    bool cur_changed = false, new_changed = false;

    void mark_changed(bool is_new) { (is_new ? new_changed : cur_changed) = true; }
  };
  // A message in tmp/, or what is to be renamed.
  struct Staged {
    std::string name;
    Fd file;
    struct stat status {};
  };

  void remove_old_leftovers();
  void apply_with_barrier(std::span<const StoreChange> changes, std::vector<Result<Entry>>& answers);
  Result<InUse*> use_folder(const std::string& name, bool make);
  Result<void> sync_folders();

  Result<Staged> stage(const StoreChange& change);
  static Result<void> write_staged(const StoreChange& change, int tmp, Staged& staged,
                                   const std::string& path);
  Result<Entry> change_one(const StoreChange& change, Result<Staged>& staged);
  Result<Entry> deliver(const StoreChange& change, Staged& staged);
  Result<Entry> rename(const StoreChange& change);
  Result<Entry> remove(const StoreChange& change);
  Result<Entry> change_folder(const StoreChange& change);
  Result<Entry> change_subscriptions(const StoreChange& change);
  Result<std::uint32_t> letters_for(InUse& into, const std::vector<std::string>& words);
  Result<char> delimiter_in(const InUse& into);
  static dev_t device_of(const Folder& folder);
  Result<Entry> put(int directory, const std::string& file, const Seen& seen, const std::string& unique,
                    bool set_apart, const Item& item, InUse& into);
  Result<Entry> move_by_copy(const StoreChange& change, const Seen& seen, const std::string& unique,
                             InUse& into);

  const std::string& root_;
  Listings& listings_;
  std::map<std::string, InUse> in_use_;
  std::vector<InUse> no_longer_used_;  // folders that were removed, or tried to be; still to be synced
  bool removed_leftovers_ = false;
  std::set<dev_t> without_colons_;                       // file systems that have refused one
  std::set<std::pair<std::string, std::string>> added_;  // folder and local, by this call of apply()
};

}  // namespace kin::sync::maildir
