// RecentContents: the objects that a backup saw last, as bases for the next ones. Thread-safe.
//
// A base is most often a neighbour: the same file in the release before, the mail before. Those need not be
// read and decoded again. And an object that is on its way to a pack cannot be read from there yet, so it
// stays here, whatever the limit, until stored() says that it can.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/mutex.h"
#include "lib/object/object_id.h"

#include <list>
#include <memory>
#include <unordered_map>

namespace kin {

class RecentContents {
 public:
  // Nothing more sets out while more than `on_way_bytes` are on their way. That must be more than may have to
  // wait for others to come.
  struct Limits {
    std::size_t stored_bytes;
    std::size_t near_bytes;
    std::size_t on_way_bytes;
  };
  explicit RecentContents(const Limits& limits) : limits_(limits) {}

  // An object on its way. Waits while there is too much; false when cancelled.
  bool add(const ObjectId& id, std::shared_ptr<const Bytes> content);
  // It has arrived; the oldest make room for it.
  void stored(const ObjectId& id);
  // Whether it is among the last near_bytes that were added. Those must be here at any speed, so stored_bytes
  // has room for them, for the object itself, and for what may be stored after it though it was added before;
  // whether older ones are here depends on how far others have come.
  bool is_near(const ObjectId& id) const;
  // Nothing will arrive any more: add() no longer waits.
  void cancel();
  // Null if it is not here.
  std::shared_ptr<const Bytes> find(const ObjectId& id) const;

 private:
  struct Entry {
    std::shared_ptr<const Bytes> content;
    bool stored = false;
    std::uint64_t end = 0;  // bytes added up to here
  };

  const Limits limits_;
  mutable Mutex mutex_;
  CondVar arrived_;
  std::size_t on_way_bytes_ KIN_GUARDED_BY(mutex_) = 0;
  bool cancelled_ KIN_GUARDED_BY(mutex_) = false;
  std::unordered_map<ObjectId, Entry, ObjectIdHash> entries_ KIN_GUARDED_BY(mutex_);
  std::list<ObjectId> stored_ KIN_GUARDED_BY(mutex_);  // the oldest in front
  std::size_t stored_bytes_ KIN_GUARDED_BY(mutex_) = 0;
  std::uint64_t added_bytes_ KIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kin
