// BoxChange: changes of the messages in one mbox file, which is under lock. What is asked of it is collected,
// made all at once, and then told: it costs one appending write if it only adds, or else one rewriting of the
// file.
//
// What is to be written is read again and compared before the old bytes are gone. One thread at a time.
#pragma once

#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_lock.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kin::sync::mbox {

Entry entry_of(const std::string& folder, const Row& row, Marks marks);
Marks marks_in(const Item& item);
// Without its envelope.
ByteView message_in(ByteView file, const Range& range);
// busy
Error message_changed(const std::string& path);

class BoxChange {
 public:
  // All of these must outlive it.
  BoxChange(const std::string& folder, const Place& place, LockedBox& box, const Options& options)
      : folder_(folder), place_(place), box_(box), options_(options) {}

  // With the table of before, if it is still right: then only add() is possible, and does not read the file.
  Result<void> begin(std::optional<Table> table);

  // Each gives a number, by which the answer is asked for. unsupported, if an mbox cannot hold it; busy, if
  // the message to be changed or removed is not as it was. One to be removed that is gone is as it is to be.
  Result<std::size_t> add(ByteView content, const Item& item);
  Result<std::size_t> update(const Entry& entry, const Item& item);
  Result<std::size_t> remove(const Entry& entry);

  // On the disk when this returns. On an error the file is as it was, or whoever locks it next finishes this.
  Result<void> commit();
  // When it is committed: the entry as it is now, or as it was if it was removed.
  Result<Entry> answer(std::size_t number) const;
  Table take_table() { return std::move(table_); }

 private:
  struct Answer {
    enum class Kind { row, added, same_as, removed } kind;
    std::size_t at = 0;  // the row, or the one of those added
    Digest digest{};     // same_as: the at-th with this content
    Entry entry;         // removed
  };
  struct Edit {
    bool is_removed = false;
    Bytes message;
    Marks marks;
  };
  struct Added {
    Bytes message;
    Row row;
    Marks marks;
  };

  Result<std::optional<std::uint32_t>> find(const Entry& entry, const Marks* wanted) const;
  Result<Marks> marks_at(const Row& row) const;
  std::size_t count(const Digest& digest) const;
  std::string added_text(std::string_view before) const;
  Bytes whole_text() const;
  Result<void> append_added();
  Result<void> rewrite();
  std::size_t tell(Answer answer) {
    answers_.push_back(std::move(answer));
    return answers_.size() - 1;
  }

  const std::string& folder_;
  const Place& place_;
  LockedBox& box_;
  const Options& options_;
  Bytes file_;
  std::string_view line_end_ = "\n";
  Table table_;
  std::map<std::uint32_t, Edit> edits_;  // by row
  std::vector<Added> added_;
  std::vector<Answer> answers_;
};

}  // namespace kin::sync::mbox
