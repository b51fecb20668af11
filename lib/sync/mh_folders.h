// Folders of an MH store: how their directories are found, opened and made, and which messages are in one.
//
// Nothing outside the root is ever touched: a folder is opened a component at a time, and none may be a
// symlink. A Directories may be used by many threads; what else is here has no state.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/mh_sequences.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kin::sync::mh {

// By what readdir says of its type, or else by a look.
bool is_directory(int parent, std::string_view name, unsigned char type);

// unsupported, unless a folder of that name would be found again by walk().
Result<void> check_folder(const std::string& folder);

// A file of a folder that has a number for a name.
struct Seen {
  enum class State : std::uint8_t { good, not_regular, unreadable, gone };

  std::uint32_t number = 0;
  State state = State::good;
  Fingerprint fingerprint;

  // That of the numbers as text: 1, 10, 2.
  bool operator<(const Seen& other) const { return sort_key() < other.sort_key(); }
  bool is_same_file(const Seen& other) const {
    return number == other.number && fingerprint.inode == other.fingerprint.inode;
  }

 private:
  std::pair<std::uint64_t, std::uint32_t> sort_key() const;
};

// All of a folder, in their order, as they are at this moment: what another program renames meanwhile may be
// missing.
Result<std::vector<Seen>> look_at_messages(int directory, const std::string& path);
// The same without that: busy, if the folder does not stop changing.
Result<std::vector<Seen>> look_until_stable(int directory, const std::string& path);

// What an entry is by its file and the sequences of its folder: all but the folder, which it has already.
void describe(std::uint32_t number, const Fingerprint& fingerprint, const MhSequences& sequences,
              Entry& entry);

class Directories {
 public:
  Directories(std::string root, MhProfile profile) : root_(std::move(root)), profile_(std::move(profile)) {}

  const MhProfile& profile() const { return profile_; }

  std::string path(const std::string& folder) const { return folder.empty() ? root_ : root_ + "/" + folder; }

  // not_found, if it is not there and is not to be made. What is made is on the disk when this returns.
  Result<Fd> open(const std::string& folder, bool make) const;

  // All below the root, and the root. One below it that cannot be listed goes to on_skipped instead.
  struct Look {
    int directory;
    const std::string& folder;
    bool has_messages;
    std::vector<std::string> stale;  // temporary files of a kin that is no more
  };
  using OnFolder = std::function<void(const Look& look)>;
  Result<void> walk(const OnFolder& on_folder, const SyncStore::OnSkipped& on_skipped) const;

  // Unless something is in it: then it stays, which is no error. Nor is it one if it is gone.
  Result<void> remove(const std::string& folder) const;

 private:
  Result<void> walk(int directory, const std::string& folder, int depth, const OnFolder& on_folder,
                    const SyncStore::OnSkipped& on_skipped) const;

  const std::string root_;
  const MhProfile profile_;
};

}  // namespace kin::sync::mh
