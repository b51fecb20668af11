// BlockCopy: takes content out of one repository and into another.
//
// A block is decoded, and its objects are compared with their ids. If all of them are wanted and new, its
// payload goes into the target as it is: a delta stays one where its base is there, or is wanted and so comes
// along first. A base that nobody asked for does not come along: whoever gets a copy of one snapshot need not
// get parts of others. Then, and where only some of a group is wanted or new, objects are encoded anew.
//
// One thread at a time. The repositories must outlive it.
#pragma once

#include "lib/delta/block.h"
#include "store/copied_ids.h"
#include "store/group_writer.h"
#include "store/repository.h"

#include <functional>
#include <optional>
#include <vector>

namespace kin::store {

struct CopiedContent {
  std::uint64_t objects = 0, bytes = 0;  // that were new in the target, trees and lists included
  std::uint64_t stored_bytes = 0;        // that they take there
  std::uint64_t deltas_kept = 0;
  std::uint64_t deltas_replaced = 0;  // by whatever was smallest without their base
  std::uint64_t read_bytes = 0;       // of the source's blocks
};

class BlockCopy {
 public:
  // Of an object that may come along with another: whether it is wanted, too.
  using IsWanted = std::function<bool(const ObjectId& id)>;

  BlockCopy(Repository& source, Repository& target, CopiedIds& ids, IsWanted is_wanted)
      : source_(source), target_(target), ids_(ids), is_wanted_(std::move(is_wanted)), groups_(target) {}

  // Nothing, and it is in `ids` then; or what keeps it from being read in the source. An error is of the
  // target.
  Result<std::optional<Error>> copy(const ObjectId& id);
  // One that is made for the target.
  Result<ObjectId> store(ObjectKind kind, Bytes bytes);
  // To the target, whose flush() is the caller's.
  Result<void> flush() { return groups_.flush(); }

  CopiedContent copied() const;

 private:
  struct SourceBlock {
    OpenedBlock opened;
    BlockContent content;
  };
  // An object of the target, and its bytes, which someone else keeps.
  struct NewObject {
    BlockObject object;
    ByteView bytes;
  };

  Result<SourceBlock> read(const ObjectId& id);
  Result<void> copy_block(SourceBlock block, const ObjectId& asked_for);
  // To lean a delta on, in the target; nothing if there is no good one.
  Result<std::optional<ObjectId>> find_base(const ObjectId& base, const BlockObject& object);
  Result<bool> may_lean(const ObjectId& base, const BlockObject& object);
  Result<std::optional<NewObject>> claim(ObjectKind kind, const ObjectId& id, ByteView bytes);
  Result<void> add(const NewObject& object);
  Result<void> append(const EncodedBlock& block);

  Repository& source_;
  Repository& target_;
  CopiedIds& ids_;
  const IsWanted is_wanted_;
  BlockEncoder encoder_{Effort::normal()};
  GroupWriter groups_;
  CopiedContent copied_;
};

}  // namespace kin::store
