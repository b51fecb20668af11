// Entries of a Maildir: what a file in a folder is to the engine, and how it is found again.
#pragma once

#include "lib/sync/maildir_folder.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kin::sync::maildir {

using Seen = Listing::Seen;

// How often a file is looked for again that was renamed after it was found.
inline constexpr int kMostRenamesMeanwhile = 10;

// The `local` of a message is the unique part of its name. Where another file has the same, or it cannot be
// one, it is set apart: its `local` is cur/NAME or new/NAME, as it was named when it was first seen.
bool is_set_apart(std::string_view local);
bool is_always_set_apart(const std::string& folder, std::string_view unique);

Entry entry_of(const std::string& folder, std::string local, const Seen& seen, const Keywords& keywords);

// The set of subscribed folders, which is an entry of the root; nothing if there is none.
Result<std::optional<Entry>> find_subscriptions(const Folder& root);

// What is known of the folders by now. A listing stays as long as someone has it.
class Listings {
 public:
  std::shared_ptr<Listing> of(const std::string& folder);
  std::shared_ptr<const Listing> known_of(const std::string& folder) const;  // null: nothing is
  void forget(const std::string& folder) { listings_.erase(folder); }

  // The file of an entry, under whatever name it has now. not_found if it is gone, busy if another is in its
  // place.
  Result<Seen> find(const std::string& name, const Folder& folder, const Entry& entry);

 private:
  std::map<std::string, std::shared_ptr<Listing>> listings_;
};

}  // namespace kin::sync::maildir
