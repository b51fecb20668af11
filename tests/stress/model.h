// Model: what must be restorable, by what clients were told. A snapshot whose commit succeeded, and one that
// was brought back, must be listed and restore to exactly its content until somebody asks to forget it. What
// nobody was told of, since who did it was killed, may be there or not; but what is listed must be whole.
#pragma once

#include "store/repository.h"
#include "tests/support/random_bytes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kin::testing {

using FileContents = std::map<std::string, Bytes>;    // by path
using ContentHashes = std::map<std::string, Digest>;  // likewise

ContentHashes hashes_of(const FileContents& files);

// What the tree holds, all of it read.
Result<ContentHashes> restore_all(store::Repository& repository, const ObjectId& tree);

class Model {
 public:
  enum class Where { listed, forgotten, unsure };
  struct Known {
    std::string label;
    Where where = Where::listed;
    bool is_taken = false;            // by a client that changes where it is
    bool may_be_broken = false;       // put where snapshots are, by one that was killed before it could look
    std::uint64_t prunes_before = 0;  // ended when it was forgotten
  };

  // Before it is stored; the label is the snapshot's host.
  void expect(const std::string& label, ContentHashes content) { contents_[label] = std::move(content); }
  const ContentHashes* content(const std::string& label) const;

  std::map<SnapshotId, Known>& snapshots() { return snapshots_; }
  // One at random that nobody has taken; it is then.
  std::optional<SnapshotId> take(Random& random, Where where);
  std::size_t count(Where where) const;

  // With nobody at work: what is there is what must be, and restores. What is there and was not known is from
  // now on. Sets aside what may be broken and is. Gives what is wrong.
  std::vector<std::string> compare(store::Repository& repository);
  std::uint64_t left_broken() const { return left_broken_; }  // snapshots that were set aside

  std::uint64_t prunes_begun = 0, prunes_ended = 0;

 private:
  Result<void> look_at(store::Repository& repository, const SnapshotId& id, std::vector<std::string>& wrong);

  std::map<std::string, ContentHashes> contents_;
  std::map<SnapshotId, Known> snapshots_;
  std::uint64_t left_broken_ = 0;
};

}  // namespace kin::testing
