// Marks: what prunes mean to remove. A prune that finds a pack needless notes it, with its own number, the
// repository's generation; a later one, some generations on, removes it if it is still needless. So who was
// at work at the time of the mark, and took the pack's objects for stored, has that long to end.
//
// The newest file counts, and of older ones what they meant to sweep. Without any, nothing is marked: a mark
// that is lost only delays.
#pragma once

#include "lib/object/object_id.h"
#include "lib/object/snapshot.h"
#include "store/backend.h"
#include "store/crypto.h"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace kin::store {

struct Marks {
  std::uint64_t generation = 0;                   // how many prunes there were
  std::uint64_t last_sweep = 0;                   // the generation that last removed a pack, or began to
  std::map<ObjectId, std::uint64_t> packs;        // with the generation that marked each
  std::set<ObjectId> sweeping;                    // are being removed, or are gone
  std::map<SnapshotId, std::uint64_t> forgotten;  // snapshots, as packs

  bool condemns(const ObjectId& pack) const { return packs.contains(pack) || sweeping.contains(pack); }
  bool operator==(const Marks&) const = default;
};

Bytes encode_marks(const Marks& marks);
Result<Marks> decode_marks(ByteView bytes);

struct StoredMarks {
  std::set<std::string> names;  // of the files
  Marks marks;
};

Result<std::set<std::string>> list_marks(Backend& backend);
// A file that cannot be read is left out, and told of.
Result<StoredMarks> read_marks(Backend& backend, const Sealer& sealer,
                               const std::function<void(const Error&)>& on_damage);
Result<Marks> read_mark_file(Backend& backend, const Sealer& sealer, const std::string& name);
Result<std::string> put_marks(Backend& backend, const Sealer& sealer, const Marks& marks);  // durable

}  // namespace kin::store
