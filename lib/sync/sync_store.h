// SyncStore: a directory that is kept the same as another: a Maildir, an MH store, mbox files, any tree. One
// file per kind, and a row in store_kinds.cpp. It knows the rules of its kind, and nothing of peers, stamps
// or state: it shows what is there, and makes changes to it. One thread at a time.
#pragma once

#include "lib/container/byte_source.h"
#include "lib/sync/item.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kin::sync {

// Changes whenever the content of an entry may have. Where a kind has something better than inode, size and
// mtime, it puts that in their place.
struct Fingerprint {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;

  bool operator==(const Fingerprint&) const = default;
};

// Something in a folder, as a scan sees it.
struct Entry {
  std::string
      local;  // by which the store finds it again; unique in its folder, and the same as long as it can be
  Fingerprint fingerprint;
  Item item;  // all but object and copy; of messages also without size, where that is not that of the file
};

struct StoreChange {
  enum class Kind {
    add,     // a new entry; `content` is its content, if it is a message or file
    update,  // `entry` gets the flags, words, time and mode of `item`; and `content`, if has_content
    move,    // `entry`, which is a message, goes to item.folder, and gets flags and words of `item`
    remove,  // `entry` goes
  };
  Kind kind = Kind::add;
  Item item;           // as it is to be
  std::string folder;  // of `entry`; empty for the root, or for add
  Entry entry;         // as it was when it was last seen; not for add
  bool has_content = false;
  Bytes content;
  std::string content_path;         // instead, if not empty: a file that has the content
  bool may_take = false;            // that file needs not stay: it may be renamed
  std::vector<std::string> others;  // of equal messages in item.folder: they are not the one to be added
};

class SyncStore {
 public:
  virtual ~SyncStore() = default;

  virtual const char* kind() const = 0;

  // Every folder, in the order of their names as bytes; "" is the root, if that can hold entries. Of mail,
  // each is an Item of type directory too; of a tree, directories are entries of the one that they are in. A
  // directory below the root that cannot be looked at goes to on_skipped instead, by the name that it would
  // have as a folder: neither it nor what is below it counts as gone.
  using OnSkipped = std::function<void(const std::string& local, const Error& error)>;
  virtual Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) = 0;

  // A value that is another one whenever the folder may hold something else than before: while it is the
  // same, the folder need not be scanned. Nothing, if that cannot be told. Asked for before a scan, so that
  // it hides no change amid it.
  virtual Result<std::optional<std::uint64_t>> folder_fingerprint(const std::string& folder) {
    static_cast<void>(folder);
    return std::optional<std::uint64_t>();
  }

  // Every entry of a folder, in the order of `local` as bytes. An entry that cannot be looked at goes to
  // on_skipped instead, by its `local` (so that it does not count as gone) and with a message that names its
  // path. not_found if the folder is gone by now.
  using OnEntry = std::function<Result<void>(Entry entry)>;
  virtual Result<void> scan(const std::string& folder, const OnEntry& on_entry,
                            const OnSkipped& on_skipped) = 0;

  // The content of a message or file: of an mbox message what it would be in a Maildir. not_found if it is
  // gone, busy if it is not as it was.
  virtual Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) = 0;

  // Makes the changes, in this order, and says of each how the entry is now (of a removed one: as it was), or
  // why it could not be made: busy, if the entry is not as it was. Each is seen by others as a whole or not
  // at all; what the answer says was made is on the disk when this returns. One barrier serves all, so it
  // pays to have many. Where an added entry is there already with the same content (and is none of the
  // others, nor one that was added by this call), or a removed one is gone, that is an answer and no error.
  virtual std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) = 0;

  // For messages to people.
  virtual std::string path_of(const std::string& folder, const Entry& entry) const = 0;
};

struct StoreKind {
  std::uint8_t number;  // on the wire; never reused
  const char* name;     // as in --kind
  const char* summary;
  bool is_mail;
  // How sure it is that `root` is one: 0 is no. Cheap.
  int (*detect)(const std::string& root);
  // `root` is there, or is to be made by the first change.
  Result<std::unique_ptr<SyncStore>> (*open)(const std::string& root);
};

// The visible table of all kinds; conformance tests loop over it.
std::span<const StoreKind> store_kinds();
const StoreKind* find_store_kind(std::string_view name);      // null: there is none of that name
const StoreKind* find_store_kind(std::uint8_t number);        // null: of a newer kin
const StoreKind& detect_store_kind(const std::string& root);  // at least a tree

}  // namespace kin::sync
