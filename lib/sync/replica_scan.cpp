#include "lib/sync/replica_scan.h"

#include "lib/sync/former_contents.h"
#include "lib/sync/unheld_words.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace kin::sync {
namespace {

constexpr std::size_t kCommitBytes = 8 << 20;
constexpr std::size_t kContentBytes = 4 << 20;  // more is not held in memory to be looked at
constexpr std::size_t kMostEquals = 4096;       // of one message in all folders

class Scan {
 public:
  Scan(SyncStore& store, bool is_mail, Replica& replica, const ScanObserver& observer,
       const std::stop_token& stop)
      : store_(store), is_mail_(is_mail), replica_(replica), observer_(observer), stop_(stop) {}

  Result<ScanCounts> run() {
    KIN_TRY_ASSIGN(const auto known, replica_.folders());
    std::map<std::string, Error> unseen;
    const SyncStore::OnSkipped on_unseen = [&](const std::string& folder, const Error& error) {
      unseen.insert_or_assign(folder, error);
    };
    KIN_TRY_ASSIGN(std::vector<std::string> now, store_.folders(on_unseen));
    std::set<std::string> gone;
    for (const auto& [folder, fingerprint] : known)
      if (!std::binary_search(now.begin(), now.end(), folder)) gone.insert(folder);
    if (!gone.empty()) {  // the second look
      KIN_TRY_ASSIGN(now, store_.folders(on_unseen));
      for (const std::string& folder : now) gone.erase(folder);
    }
    for (const auto& one : unseen) {
      const std::string& folder = one.first;
      const std::size_t kept = std::erase_if(
          gone, [&](const std::string& other) { return other == folder || other.starts_with(folder + "/"); });
      if (kept == 0) note_never_seen(folder, {});
      skip(folder, one.second);
    }
    for (const std::string& folder : now) {
      const auto before = known.find(folder);
      const bool is_new = before == known.end();
      KIN_TRY_ASSIGN(const bool is_seen, scan_folder(folder, is_new ? std::nullopt : before->second));
      if (is_new && !is_seen) note_never_seen(folder, {});
      // One that was deleted, while something was put into it elsewhere, is there again.
      if (is_seen && is_mail_ && !folder.empty()) {
        KIN_TRY_ASSIGN(const Replica::EntryCursor row, replica_.entries_of(folder));
        if (is_new || row.valid()) KIN_TRY(add_folder(folder));
      }
    }
    if (is_mail_ && !(departed_.empty() && gone.empty())) KIN_TRY(look_for_moved());
    for (const auto& [folder, departed] : departed_) {
      KIN_TRY(remove(folder, departed));
      replica_.set_folder(folder, looked_at_.at(folder));
    }
    for (const std::string& folder : gone) {
      KIN_TRY(remove_all(folder));
      if (is_mail_ && !folder.empty()) KIN_TRY(remove_item(item_id(folder_item(folder))));
      replica_.forget_folder(folder);
    }
    KIN_TRY(replica_.commit(true));
    return counts_;
  }

 private:
  static Item folder_item(const std::string& folder) {
    Item item;
    item.type = ItemType::directory;
    item.name = folder;
    return item;
  }

  Result<void> add_folder(const std::string& folder) {
    KnownItem known;
    known.item = folder_item(folder);
    known.id = item_id(known.item);
    KIN_TRY_ASSIGN(const auto before, replica_.find(known.id));
    if (before && !before->deleted) return {};
    known.stamp = replica_.next_stamp();
    return replica_.set(std::move(known));
  }

  // A message may have moved from a folder that was still to be looked at to one that no longer was.
  Result<void> look_for_moved() {
    KIN_TRY(replica_.commit(false));  // rows are read as they were committed
    for (const auto& [folder, fingerprint] : std::map(looked_at_)) KIN_TRY(scan_folder(folder, fingerprint));
    return {};
  }

  // Whether it could be looked at.
  Result<bool> scan_folder(const std::string& folder, std::optional<std::uint64_t> before) {
    const auto fingerprint = store_.folder_fingerprint(folder);
    if (fingerprint && *fingerprint && before == *fingerprint) {
      looked_at_[folder] = *fingerprint;
      return true;
    }
    missing_.clear();
    replaced_.clear();
    Result<bool> changed = fingerprint ? look_over(folder) : Result<bool>(fingerprint.error());
    if (changed && *changed) {
      changed = take_changes(folder);
    }
    if (!changed) {
      if (changed.error().code() == ErrorCode::cancelled) return std::move(changed).error();
      skip(folder, changed.error());  // nothing of it counts as gone
      if (departed_.erase(folder) > 0) replica_.set_folder(folder, std::nullopt);
      return false;
    }
    looked_at_[folder] = *fingerprint;
    const bool is_done = missing_.empty();
    if (is_done)
      departed_.erase(folder);
    else
      departed_[folder] = std::move(missing_);  // of a later look, what is missing still
    // Until what departed is noted, the folder is one that has changed.
    replica_.set_folder(folder, is_done ? *fingerprint : std::nullopt);
    KIN_TRY(commit_some());
    return true;
  }

  // Whether anything is not as it was; fills missing_ and replaced_.
  Result<bool> look_over(const std::string& folder) {
    KIN_TRY_ASSIGN(Replica::EntryCursor row, replica_.entries_of(folder));
    bool changed = false;
    std::set<std::string> skipped;
    const auto miss_until = [&](const std::string* local) -> Result<void> {
      while (row.valid() && (local == nullptr || row.local() < *local)) {
        missing_[row.local()] = row.seen();
        KIN_TRY(row.next());
      }
      return {};
    };
    const auto compare = [&](const Entry& entry) -> Result<void> {
      if (stop_.stop_requested()) return interrupted();
      ++counts_.entries;
      tell_progress(folder);
      KIN_TRY(miss_until(&entry.local));
      if (!row.valid() || row.local() != entry.local) {
        changed = true;
        return {};
      }
      if (row.seen().fingerprint != entry.fingerprint) replaced_[row.local()] = row.seen().item;
      if (row.seen().look != look_of(entry)) changed = true;
      return row.next();
    };
    KIN_TRY(
        store_.scan(folder, compare, [&](const std::string& local, const Error&) { skipped.insert(local); }));
    KIN_TRY(miss_until(nullptr));
    for (const std::string& local : skipped) missing_.erase(local);
    return changed || !missing_.empty() || !replaced_.empty() || !skipped.empty();
  }

  Result<bool> take_changes(const std::string& folder) {
    const auto scanned = store_.scan(
        folder,
        [&](Entry entry) -> Result<void> {
          if (stop_.stop_requested()) return interrupted();
          tell_progress(folder);
          missing_.erase(entry.local);
          KIN_TRY_ASSIGN(const auto seen, replica_.entry(folder, entry.local));
          if (seen && seen->fingerprint == entry.fingerprint && seen->look == look_of(entry)) return {};
          const auto taken = take(folder, entry, seen);
          if (!taken) {
            if (taken.error().code() == ErrorCode::cancelled) return taken.error();
            if (!seen && taken.error().code() != ErrorCode::not_found) note_never_seen(folder, entry.local);
            skip(store_.path_of(folder, entry), taken.error());
          } else {
            replaced_.erase(entry.local);  // what is here now is known
          }
          return commit_some();
        },
        [&](const std::string& local, const Error& error) {
          missing_.erase(local);
          // What is of no kind that is kept is at no other end either.
          const auto seen = replica_.entry(folder, local);
          if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::not_found && seen &&
              !*seen)
            note_never_seen(folder, local);
          skip(local, error);
        });
    KIN_TRY(scanned);
    return true;
  }

  Result<void> take(const std::string& folder, Entry& entry, const std::optional<SeenEntry>& seen) {
    std::optional<KnownItem> known;
    if (seen) {
      KIN_TRY_ASSIGN(known, replica_.find(seen->item));
    }
    if (known && (known->deleted || known->local != entry.local)) known.reset();
    Item item = entry.item;
    item.folder = folder;
    std::optional<BlockSignature> signature;
    if (known && seen->fingerprint == entry.fingerprint && known->item.type == item.type) {
      item.object = known->item.object;
      item.size = known->item.size;
      item.copy = known->item.copy;
    } else if (bears_content(item)) {
      KIN_TRY_ASSIGN(signature, read_content(folder, entry, item));
      if (known && item.type == ItemType::message && known->item.object == item.object)
        item.copy = known->item.copy;
      else if (item.type == ItemType::message)
        KIN_TRY(choose_copy(item));
    }
    KIN_TRY(check_item(item));
    const ItemId id = item_id(item);
    if (item.type == ItemType::message) KIN_TRY(add_unheld_words(replica_, id, item.words));
    KIN_TRY_ASSIGN(std::optional<KnownItem> target, replica_.find(id));
    const bool is_new = !target || target->deleted;
    const bool is_changed = is_new || !same_state(target->item, item);
    KnownItem next = target ? *std::move(target) : KnownItem{};
    if (!is_new && next.local != entry.local) KIN_TRY(forget_entry_of(folder, next));  // it was renamed
    if (!is_new && item.type == ItemType::message && !next.item.name.empty()) item.name = next.item.name;
    next.id = id;
    next.item = item;
    next.deleted = false;
    next.local = entry.local;
    if (is_changed) {
      next.stamp = replica_.next_stamp();
      ++(is_new ? counts_.added : counts_.changed);
    }
    if (known && known->id != id) KIN_TRY(set_aside(folder, *std::move(known), *seen));
    KIN_TRY(replica_.set(std::move(next)));
    replica_.set_entry(folder, entry.local, {entry.fingerprint, look_of(entry), id});
    if (signature) KIN_TRY(note_content(replica_, id, *std::move(signature)));
    return {};
  }

  // Where an item was, another is now. Until that one turns up elsewhere, or a second look did not find it,
  // it has a row of a name that no store has: so it is missing, whenever this scan is killed.
  Result<void> set_aside(const std::string& folder, KnownItem known, const SeenEntry& seen) {
    known.local += "/" + hex(known.id);
    replica_.set_entry(folder, known.local, seen);
    missing_[known.local] = seen;
    return replica_.set(std::move(known));
  }

  // A file's signature, so that it can be changed cheaply.
  Result<std::optional<BlockSignature>> read_content(const std::string& folder, const Entry& entry,
                                                     Item& item) {
    KIN_TRY_ASSIGN(const auto source, store_.read(folder, entry));
    const bool is_file = item.type == ItemType::file;
    SignatureBuilder builder(is_file ? entry.fingerprint.size : 0);
    Hasher hasher;
    Bytes buffer(256 << 10), content;
    item.size = 0;
    for (;;) {
      if (stop_.stop_requested()) return interrupted();
      tell_progress(folder);
      KIN_TRY_ASSIGN(const std::size_t got, source->read(buffer));
      const ByteView piece = ByteView(buffer).first(got);
      hasher.add(piece);
      if (is_file) builder.add(piece);
      item.size += got;
      if (item.size <= kContentBytes) append(content, piece);
      if (got < buffer.size()) break;
    }
    item.object.bytes = hasher.finish();
    counts_.bytes_read += item.size;
    if (item.size <= kContentBytes && observer_.on_content)
      KIN_TRY(observer_.on_content(item.object, content));
    return builder.finish(item.object);
  }

  // Of equal messages in a folder, the number of one which had another name until now; or the first that is
  // free.
  Result<void> choose_copy(Item& item) {
    // At the same place, another may have been found since.
    const auto leaves = [&](const KnownItem& known) {
      const auto is_missing = missing_.find(known.local);
      if (is_missing != missing_.end() && is_missing->second.item == known.id) return true;
      const auto is_replaced = replaced_.find(known.local);
      return is_replaced != replaced_.end() && is_replaced->second == known.id;
    };
    if (!missing_.empty() || !replaced_.empty()) {
      KIN_TRY_ASSIGN(const auto equals, replica_.with_object(item.object, kMostEquals));
      for (const KnownItem& known : equals)
        if (known.item.folder == item.folder && !known.deleted && leaves(known)) {
          item.copy = known.item.copy;
          return {};
        }
    }
    for (item.copy = 0;; ++item.copy) {
      KIN_TRY_ASSIGN(const auto known, replica_.find(item_id(item)));
      if (!known || known->deleted) return {};
    }
  }

  Result<void> forget_entry_of(const std::string& folder, const KnownItem& known) {
    KIN_TRY_ASSIGN(const auto seen, replica_.entry(folder, known.local));
    if (seen && seen->item == known.id) replica_.forget_entry(folder, known.local);
    return {};
  }

  // What was missing twice, and did not turn up under another name.
  using Departed = std::map<std::string, SeenEntry>;

  Result<void> remove(const std::string& folder, const Departed& departed) {
    for (const auto& [local, seen] : departed) {
      KIN_TRY_ASSIGN(const auto known, replica_.find(seen.item));
      if (known && !known->deleted && known->local == local) KIN_TRY(remove_one(folder, *known, departed));
      replica_.forget_entry(folder, local);
      KIN_TRY(commit_some());
    }
    return {};
  }

  // Of equal messages it is always the one with the highest number that goes, whichever name went: so two
  // ends that each remove one of two have one left.
  Result<void> remove_one(const std::string& folder, KnownItem known, const Departed& departed) {
    if (known.item.type != ItemType::message) return remove_item(known.id);
    std::optional<KnownItem> highest;
    for (Item equal = known.item;;) {
      ++equal.copy;
      KIN_TRY_ASSIGN(auto other, replica_.find(item_id(equal)));
      if (!other) break;
      const bool stays = !other->deleted && !departed.contains(other->local);
      if (stays) highest = *std::move(other);
    }
    if (!highest) return remove_item(known.id);
    KIN_TRY_ASSIGN(auto seen, replica_.entry(folder, highest->local));
    if (!seen) return remove_item(known.id);
    const std::uint32_t copy = known.item.copy;
    const Item before = known.item;
    known.item = highest->item;
    known.item.copy = copy;
    known.local = highest->local;
    if (!same_state(before, known.item)) known.stamp = replica_.next_stamp();
    seen->item = known.id;
    replica_.set_entry(folder, known.local, *seen);
    KIN_TRY(replica_.set(std::move(known)));
    return remove_item(highest->id);
  }

  Result<void> remove_all(const std::string& folder) {
    Departed departed;
    KIN_TRY_ASSIGN(Replica::EntryCursor row, replica_.entries_of(folder));
    while (row.valid()) {
      departed[row.local()] = row.seen();
      KIN_TRY(row.next());
    }
    return remove(folder, departed);
  }

  Result<void> remove_item(const ItemId& id) {
    KIN_TRY_ASSIGN(auto known, replica_.find(id));
    if (!known || known->deleted) return {};
    known->deleted = true;
    known->local.clear();
    known->stamp = replica_.next_stamp();
    if (known->item.type == ItemType::file) forget_contents(replica_, id);
    ++counts_.removed;
    return replica_.set(*std::move(known));
  }

  void tell_progress(const std::string& folder) {
    constexpr std::chrono::milliseconds kEvery{200};
    const auto time = std::chrono::steady_clock::now();
    if (!observer_.on_progress || time - told_ < kEvery) return;
    told_ = time;
    observer_.on_progress(folder, counts_.entries);
  }

  // An entry of a folder; or the folder, if `local` is empty.
  void note_never_seen(const std::string& folder, const std::string& local) {
    Entry entry;
    entry.local = local;
    entry.item.type = local.empty() ? ItemType::directory : is_mail_ ? ItemType::message : ItemType::file;
    entry.item.name = local;
    counts_.never_seen = store_.path_of(folder, entry);
    while (counts_.never_seen.ends_with('/')) counts_.never_seen.pop_back();
  }

  void skip(const std::string& what, const Error& error) {
    ++counts_.skipped;
    if (observer_.on_skipped) observer_.on_skipped(what, error);
  }

  Result<void> commit_some() {
    return replica_.uncommitted_bytes() < kCommitBytes ? Result<void>() : replica_.commit(false);
  }

  SyncStore& store_;
  const bool is_mail_;
  Replica& replica_;
  const ScanObserver& observer_;
  const std::stop_token& stop_;
  ScanCounts counts_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  // Of the folder that is being looked at: entries that are not there, and items where another file is now.
  std::map<std::string, SeenEntry> missing_;
  std::map<std::string, ItemId> replaced_;
  std::map<std::string, Departed> departed_;                       // of all folders
  std::map<std::string, std::optional<std::uint64_t>> looked_at_;  // their fingerprints then
};

}  // namespace

Result<ScanCounts> scan_store(SyncStore& store, bool is_mail, Replica& replica, const ScanObserver& observer,
                              const std::stop_token& stop) {
  return Scan(store, is_mail, replica, observer, stop).run();
}

}  // namespace kin::sync
