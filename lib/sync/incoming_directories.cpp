// A directory that is no directory any more. One end has made it a file, or a link, and the other has put
// something new into it: no item of it was changed by both, but no store can have both. So the directory
// stays one, and the other thing is kept beside it. Who merges does that; the other end waits for it, and
// asks again for what it could not place meanwhile.

#include "lib/sync/incoming.h"
#include "lib/sync/store_files.h"

#include <algorithm>

namespace kin::sync {

// False: it has been dealt with, or has to come again.
Result<bool> Incoming::clear_the_way(Wish& wish, const std::optional<KnownItem>& own) {
  KIN_TRY_ASSIGN(const bool is_clear, clear_above(wish));
  if (!is_clear) return false;
  const bool replaces_directory =
      own && !own->deleted && own->item.type == ItemType::directory && wish.item.type != ItemType::directory;
  if (!replaces_directory) return true;
  if (has_pending()) KIN_TRY(flush());  // what came into it
  KIN_TRY_ASSIGN(const bool has_unseen, has_unseen_below(join_path(own->item.folder, own->item.name)));
  if (!has_unseen) {
    clear_folder_.reset();
    return true;
  }
  if (conflicts_ == Conflicts::rehearse) {
    if (told_obstacles_.insert(wish.id).second && observer_.on_conflict)
      observer_.on_conflict(own->item, "it is a directory here, in which something is new");
  } else if (conflicts_ == Conflicts::leave) {
    left_[wish.id].push_back(wish.stamp);
    failed_.insert(wish.stamp);
  } else {
    KIN_TRY(keep_directory(wish, *own));
  }
  return false;
}

Result<bool> Incoming::clear_above(const Wish& wish) {
  if (wish.item.folder == clear_folder_) return true;
  KIN_TRY_ASSIGN(auto obstacle, obstacle_above(wish.item));
  if (obstacle && pending_items_.contains(obstacle->id)) {
    KIN_TRY(flush());
    KIN_TRY_ASSIGN(obstacle, obstacle_above(wish.item));
  }
  if (!obstacle) {
    clear_folder_ = wish.item.folder;
    return true;
  }
  if (conflicts_ == Conflicts::rehearse) {
    const bool is_conflict = differs(*obstacle) && told_obstacles_.insert(obstacle->id).second;
    if (is_conflict && observer_.on_conflict)
      observer_.on_conflict(obstacle->item, "it is a directory there, in which something is new");
    return true;
  }
  if (conflicts_ == Conflicts::leave || !differs(*obstacle)) {
    need(wish.stamp);
    return false;
  }
  if (const auto made = make_directory_of(*obstacle); !made) {
    skip(wish, made.error());
    return false;
  }
  return true;
}

// What has the name of a directory that the item is below, and is none.
Result<std::optional<KnownItem>> Incoming::obstacle_above(const Item& item) {
  for (std::size_t end = 0; end < item.folder.size();) {
    end = std::min(item.folder.find('/', end + 1), item.folder.size());
    const std::string path = item.folder.substr(0, end);
    const std::size_t slash = path.rfind('/');
    Item above;
    above.type = ItemType::directory;
    above.folder = slash == std::string::npos ? "" : path.substr(0, slash);
    above.name = slash == std::string::npos ? path : path.substr(slash + 1);
    KIN_TRY_ASSIGN(auto known, replica_.find(item_id(above)));
    if (known && !known->deleted && known->item.type != ItemType::directory) return known;
  }
  return std::optional<KnownItem>();
}

Result<void> Incoming::make_directory_of(const KnownItem& obstacle) {
  Wish wish;
  wish.id = obstacle.id;
  wish.item.type = ItemType::directory;
  wish.item.folder = obstacle.item.folder;
  wish.item.name = obstacle.item.name;
  wish.item.mode = 0755;
  for (const PastState& past : obstacle.past)  // as it was
    if (past.state && past.state->type == ItemType::directory) wish.item = *past.state;
  KIN_TRY(keep_other_version(obstacle.item, wish, obstacle, true));
  wish.stamp = replica_.next_stamp();
  wish.answers = {peer_id_, 0};
  KIN_TRY(make(std::move(wish), obstacle));
  return flush();  // so that it is one for all that comes into it
}

Result<void> Incoming::keep_directory(Wish& wish, const KnownItem& own) {
  if (wish.item.type == ItemType::file && !get_content(wish)) return {};
  if (const auto kept = keep_other_version(wish.item, wish, own, false); !kept) {
    skip(wish, kept.error());
    return {};
  }
  wish.answers = wish.stamp;
  wish.stamp = replica_.next_stamp();
  wish.item = own.item;
  return note_state(wish, own, own.local);
}

Result<bool> Incoming::has_unseen_below(const std::string& folder) {
  KIN_TRY_ASSIGN(Replica::EntryCursor row, replica_.entries_of(folder));
  for (; row.valid();) {
    KIN_TRY_ASSIGN(const auto known, replica_.find(row.seen().item));
    if (known && !known->deleted) {
      if (differs(*known)) return true;
      if (known->item.type == ItemType::directory) {
        KIN_TRY_ASSIGN(const bool has_unseen, has_unseen_below(join_path(folder, known->item.name)));
        if (has_unseen) return true;
      }
    }
    KIN_TRY(row.next());
  }
  return false;
}

}  // namespace kin::sync
