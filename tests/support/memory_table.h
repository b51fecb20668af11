// A sync::Table in memory, for tests. A process that crashes is one whose changes were not committed durably:
// crash() forgets them.
#pragma once

#include "lib/sync/table.h"

#include <map>
#include <string>
#include <tuple>

namespace kin::testing {

class MemoryTable : public sync::Table {
 public:
  Result<std::optional<Bytes>> get(ByteView key) override {
    const auto row = rows_.find(std::string(as_text(key)));
    if (row == rows_.end()) return std::optional<Bytes>();
    return std::optional<Bytes>(row->second);
  }

  std::unique_ptr<sync::TableCursor> seek(ByteView key) override {
    return std::make_unique<Cursor>(rows_, std::string(as_text(key)));
  }

  Result<void> commit(const sync::TableBatch& batch, bool durable) override {
    for (const auto& change : batch.changes()) {
      const std::string key(as_text(change.key));
      if (change.value)
        rows_[key] = *change.value;
      else
        rows_.erase(key);
    }
    if (durable) kept_ = rows_;
    return {};
  }

  void crash() { rows_ = kept_; }
  void lose() {
    rows_.clear();
    kept_.clear();
  }

 private:
  using Rows = std::map<std::string, Bytes>;

  // Sees changes that are made meanwhile, which nobody relies on; to copy all rows would take too long.
  class Cursor : public sync::TableCursor {
   public:
    Cursor(const Rows& rows, const std::string& from) : rows_(rows) { take(rows_.lower_bound(from)); }
    bool valid() const override { return valid_; }
    ByteView key() const override { return as_bytes(key_); }
    ByteView value() const override { return value_; }
    void next() override { take(rows_.upper_bound(key_)); }
    Result<void> result() const override { return {}; }

   private:
    void take(Rows::const_iterator at) {
      valid_ = at != rows_.end();
      if (valid_) std::tie(key_, value_) = *at;
    }

    const Rows& rows_;
    bool valid_ = false;
    std::string key_;
    Bytes value_;
  };

  Rows rows_, kept_;
};

}  // namespace kin::testing
