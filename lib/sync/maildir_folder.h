// Folders of a Maildir: any directory with cur/ in it. How they are found, made and removed, and what is in
// them.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace kin::sync::maildir {

// Where a message is in its folder.
struct Place {
  bool is_new = false;  // in new/, not in cur/
  std::string name;

  std::string path() const { return (is_new ? "new/" : "cur/") + name; }
};

// An open one.
struct Folder {
  std::string path;  // for messages
  Fd self;
  Fd cur;    // only of the root may it be missing
  Fd fresh;  // new/, if there is one
  Fd tmp;    // of make_folder() only

  int directory(bool is_new) const { return is_new ? fresh.get() : cur.get(); }
};

// Whether a folder may have this name: nothing outside the root, or where messages are, can be meant by it.
bool is_good_folder(std::string_view name);
// Every folder below `root`, in the order of their names; none, if there is no root. No symlink is followed.
// A directory below it that cannot be looked at goes to on_skipped instead: it may hold folders.
Result<std::vector<std::string>> find_folders(const std::string& root,
                                              const SyncStore::OnSkipped& on_skipped);
// not_found, if it is not there.
Result<Folder> open_folder(const std::string& root, const std::string& name);
// The same; but what is not there is made. On the disk when this returns.
Result<Folder> make_folder(const std::string& root, const std::string& name);
// Unless a message is in it, or what belongs to others: then it stays. Folders below it stay in any case.
Result<void> remove_folder(const std::string& root, const std::string& name);

// The names of all messages in a folder. They can be of the past: others rename files at any time, and a file
// that is renamed while a directory is read may be missing from what is read. So no name counts as gone until
// a directory in which nothing happened meanwhile does not have it.
class Listing {
 public:
  // In the order of unique parts, then cur/ before new/: the unique part, NUL, 'c' or 'n', and the rest of
  // the name.
  const std::vector<std::string>& keys() const { return keys_; }
  static std::string_view unique_of(std::string_view key) { return key.substr(0, key.find('\0')); }
  static Place place_of(std::string_view key);
  // Of the first key behind all that have this unique part.
  std::size_t position_after(std::string_view unique) const;

  // Reads the directories until nothing happened meanwhile; after many attempts, has all names that any of
  // them saw.
  Result<void> refresh(const Folder& folder);
  // Reads them once, if that never happened: enough to know which names are taken.
  Result<void> list_once(const Folder& folder);
  // Something is there by now.
  void add(const Place& place);

  std::vector<Place> places_of(std::string_view unique) const;
  std::uint32_t keywords_in_use() const;
  // That which most names have before their letters; nothing if none has any.
  std::optional<char> delimiter() const;

  struct Seen {
    Place place;
    struct stat status {};
  };
  // The first file with this unique part that `accept` takes; nothing if there is none. busy, if the folder
  // changes all the time.
  using Accept = std::function<bool(const Seen& seen)>;
  Result<std::optional<Seen>> seek(const Folder& folder, std::string_view unique, const Accept& accept);
  // Of the names that are known, those that are still there; each file once.
  std::vector<Seen> look_at(const Folder& folder, std::string_view unique,
                            bool* some_are_gone = nullptr) const;

 private:
  Result<bool> look_again(const Folder& folder);
  void count_delimiter(std::string_view key);

  std::vector<std::string> keys_;
  std::set<std::string> added_;  // since keys_ were listed
  std::map<char, std::size_t> delimiters_;
  bool listed_ = false;
};

}  // namespace kin::sync::maildir
