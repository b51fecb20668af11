// A directory that is no directory any more. One end has deleted it, or made it a file or a link, and the
// other has put something new into it: no item of it was changed by both, but no store can have both. So the
// directory stays one, and the other thing is kept beside it. Who merges does that; the other end waits for
// it, and holds back what it cannot place meanwhile.

#include "lib/sync/incoming.h"
#include "lib/sync/store_files.h"

#include <algorithm>

namespace kin::sync {

// Not where it is clear that what is here stays, or that nothing stays.
bool Incoming::needs_room(const Wish& wish, const std::optional<KnownItem>& own) const {
  if (is_mail_ || wish.deleted) return false;
  if (!own || !differs(*own) || wish.replaces == own->stamp || conflicts_ == Conflicts::take) return true;
  return conflicts_ != Conflicts::leave && merged_state(wish, *own).state;
}

// False: it has been dealt with, or waits.
Result<bool> Incoming::clear_the_way(Wish& wish, const std::optional<KnownItem>& own) {
  if (conflicts_ != Conflicts::take) {
    KIN_TRY_ASSIGN(const bool is_clear, clear_above(wish));
    if (!is_clear) return false;
  }
  const bool replaces_directory =
      own && !own->deleted && own->item.type == ItemType::directory && wish.item.type != ItemType::directory;
  if (!replaces_directory) return true;
  if (conflicts_ == Conflicts::rehearse) {
    KIN_TRY_ASSIGN(const bool has_unseen, has_unseen_below(join_path(own->item.folder, own->item.name)));
    if (has_unseen && told_conflicts_.insert(wish.id).second && observer_.on_conflict)
      observer_.on_conflict(own->item, "it is a directory here, in which something is new");
    return !has_unseen;
  }
  if (bears_content(wish.item) && !get_content(wish)) return false;
  const std::string path = join_path(wish.item.folder, wish.item.name);
  directories_.insert_or_assign(path, std::move(wish));
  return false;
}

Result<void> Incoming::remove_directories() {
  while (!directories_.empty()) {
    Wish wish = std::move(directories_.extract(directories_.begin()).mapped());
    KIN_TRY_ASSIGN(const auto own, replica_.find(wish.id));
    KIN_TRY_ASSIGN(const bool stays, keeps_directory(wish, own));
    if (stays) continue;
    clear_folder_.reset();
    if (wish.deleted)  // that was decided
      KIN_TRY(make(std::move(wish), own));
    else
      KIN_TRY(decide_with_room(std::move(wish), own));
  }
  return flush();
}

Result<bool> Incoming::clear_above(Wish& wish) {
  if (wish.item.folder == clear_folder_) return true;
  KIN_TRY_ASSIGN(auto obstacle, obstacle_above(wish.item));
  if (obstacle && pending_items_.contains(obstacle->id)) {
    KIN_TRY(flush());
    KIN_TRY_ASSIGN(obstacle, obstacle_above(wish.item));
  }
  if (!obstacle) {
    KIN_TRY_ASSIGN(const auto above, known_above(wish.item));
    for (const KnownItem& known : above)
      if (known.deleted && known.item.type == ItemType::directory) KIN_TRY(bring_back(known));
    clear_folder_ = wish.item.folder;
    return true;
  }
  if (conflicts_ == Conflicts::rehearse) {
    const bool is_conflict = differs(*obstacle) && told_conflicts_.insert(obstacle->id).second;
    if (is_conflict && observer_.on_conflict)
      observer_.on_conflict(obstacle->item, "it is a directory there, in which something is new");
    return true;
  }
  if (conflicts_ == Conflicts::leave || !differs(*obstacle)) {
    KIN_TRY(hold_back(std::move(wish), *obstacle));
    return false;
  }
  if (const auto made = make_directory_of(*obstacle); !made) {
    skip(wish, made.error());
    return false;
  }
  return true;
}

// What is known of the directories that the item is below, and of what has their names; from the top.
Result<std::vector<KnownItem>> Incoming::known_above(const Item& item) {
  std::vector<KnownItem> out;
  for (std::size_t end = 0; end < item.folder.size();) {
    end = std::min(item.folder.find('/', end + 1), item.folder.size());
    const std::string path = item.folder.substr(0, end);
    const std::size_t slash = path.rfind('/');
    Item above;
    above.type = ItemType::directory;
    above.folder = slash == std::string::npos ? "" : path.substr(0, slash);
    above.name = slash == std::string::npos ? path : path.substr(slash + 1);
    KIN_TRY_ASSIGN(auto known, replica_.find(item_id(above)));
    if (known) out.push_back(*std::move(known));
  }
  return out;
}

Result<std::optional<KnownItem>> Incoming::obstacle_above(const Item& item) {
  KIN_TRY_ASSIGN(const auto above, known_above(item));
  for (const KnownItem& known : above)
    if (!known.deleted && known.item.type != ItemType::directory) return std::optional<KnownItem>(known);
  return std::optional<KnownItem>();
}

// The other end will say what becomes of the obstacle. Contents wait in files.
Result<void> Incoming::hold_back(Wish wish, const KnownItem& obstacle) {
  if (is_last_try_) {
    skip(wish, Error(ErrorCode::busy,
                     printable(join_path(obstacle.item.folder, obstacle.item.name)) + " is not a directory"));
    return {};
  }
  failed_.insert(wish.stamp);
  if (wish.has_content && wish.content_path.empty()) {
    MemorySource content(wish.content);
    KIN_TRY(parts_.put(wish.item.object, content));
    wish.content_path = parts_.path_of(wish.item.object);
    wish.content = {};
  }
  const ItemId id = wish.id;
  held_back_.insert_or_assign(id, std::move(wish));
  return {};
}

Result<void> Incoming::place_held_back() {
  if (held_back_.empty()) return {};
  is_last_try_ = true;
  for (auto& [id, wish] : std::exchange(held_back_, {})) KIN_TRY(decide(std::move(wish)));
  is_last_try_ = false;
  return flush();
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
  KIN_TRY_ASSIGN(const ItemId copy, keep_other_version(obstacle.item, wish, obstacle, true));
  KIN_TRY(flush());
  KIN_TRY_ASSIGN(const auto kept, replica_.find(copy));
  if (!kept || kept->deleted) return Error(ErrorCode::busy, "what has the name of its directory stays");
  wish.stamp = replica_.next_stamp();
  wish.answers = {peer_id_, 0};
  KIN_TRY(make(std::move(wish), obstacle));
  return flush();  // so that it is one for all that comes into it
}

// A directory that was deleted here, while something in it was changed there: as it was.
Result<void> Incoming::bring_back(const KnownItem& directory) {
  if (conflicts_ != Conflicts::merge || !differs(directory) || pending_items_.contains(directory.id))
    return {};
  Wish wish;
  wish.id = directory.id;
  wish.item = directory.item;
  wish.stamp = replica_.next_stamp();
  wish.answers = {peer_id_, 0};
  return make(std::move(wish), directory);
}

// A directory that is to go, or to be something else, and in which there is something that the other end does
// not know of: it stays.
Result<bool> Incoming::keeps_directory(Wish& wish, const std::optional<KnownItem>& own) {
  if (is_mail_ || conflicts_ == Conflicts::take || !own || own->deleted ||
      own->item.type != ItemType::directory)
    return false;
  KIN_TRY_ASSIGN(const bool has_unseen, has_unseen_below(join_path(own->item.folder, own->item.name)));
  if (!has_unseen) return false;
  if (conflicts_ == Conflicts::leave)
    leave(wish);
  else
    KIN_TRY(keep_directory(std::move(wish), *own));
  return true;
}

Result<void> Incoming::keep_directory(Wish wish, const KnownItem& own) {
  if (!wish.deleted) {
    const auto copy = keep_other_version(wish.item, wish, own, false);
    if (!copy) {
      skip(wish, copy.error());
      return {};
    }
    KIN_TRY(flush());
    KIN_TRY_ASSIGN(const auto kept, replica_.find(*copy));
    if (!kept || kept->deleted) {  // that was told
      failed_.insert(wish.stamp);
      return {};
    }
  }
  wish.deleted = false;
  wish.answers = wish.stamp;
  wish.stamp = replica_.next_stamp();
  wish.item = own.item;
  return note_state(wish, own, own.local);
}

Result<bool> Incoming::has_unseen_below(const std::string& folder) {
  KIN_TRY_ASSIGN(Replica::EntryCursor row, replica_.entries_of(folder));
  for (; row.valid();) {
    KIN_TRY_ASSIGN(const auto known, replica_.find(row.seen().item));
    if (known && !known->deleted && !going_.contains(known->id)) {
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
