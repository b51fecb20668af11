// Table: keys in the order of their bytes, and a value for each. What a replica knows is kept in one. One
// thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kin::sync {

// Changes that are made together; the last one of a key counts.
class TableBatch {
 public:
  struct Change {
    Bytes key;
    std::optional<Bytes> value;  // none: it goes
  };

  void put(Bytes key, Bytes value) { add({std::move(key), std::move(value)}); }
  void remove(Bytes key) { add({std::move(key), std::nullopt}); }
  const std::vector<Change>& changes() const { return changes_; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return changes_.empty(); }
  void clear() {
    changes_.clear();
    bytes_ = 0;
  }

 private:
  void add(Change change) {
    bytes_ += change.key.size() + (change.value ? change.value->size() : 0) + sizeof(Change);
    changes_.push_back(std::move(change));
  }

  std::vector<Change> changes_;
  std::size_t bytes_ = 0;
};

class TableCursor {
 public:
  virtual ~TableCursor() = default;

  virtual bool valid() const = 0;  // false beyond the last key, or after an error
  virtual ByteView key() const = 0;
  virtual ByteView value() const = 0;  // both until next()
  virtual void next() = 0;
  virtual Result<void> result() const = 0;  // to be asked when it is no longer valid
};

class Table {
 public:
  virtual ~Table() = default;

  virtual Result<std::optional<Bytes>> get(ByteView key) = 0;
  // The first key that is not less; sees the table as it is now.
  virtual std::unique_ptr<TableCursor> seek(ByteView key) = 0;
  // All of them or, after a crash, none. Durable: also on the disk, with all that was committed before.
  virtual Result<void> commit(const TableBatch& batch, bool durable) = 0;
};

}  // namespace kin::sync
