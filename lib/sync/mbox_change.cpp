#include "lib/sync/mbox_change.h"

#include "lib/sync/mbox_sender.h"

#include <fmt/core.h>

#include <algorithm>
#include <sys/stat.h>
#include <utility>

namespace kin::sync::mbox {
namespace {

bool ends_in_empty_line(std::string_view text) { return text.ends_with("\n\n") || text.ends_with("\n\r\n"); }

// What must be put at the end before a message can follow.
std::string missing_end(std::string_view text, std::string_view line_end) {
  if (text.empty() || ends_in_empty_line(text)) return "";
  return std::string(text.ends_with('\n') ? "" : line_end).append(line_end);
}

}  // namespace

Entry entry_of(const std::string& folder, const Row& row, Marks marks) {
  Entry entry{row.local(), {0, row.size, static_cast<std::int64_t>(row.number())}, {}};
  entry.item.folder = folder;
  entry.item.name = name_of_sender(row.sender);
  entry.item.size = row.size;
  entry.item.flags = marks.flags;
  entry.item.words = std::move(marks.words);
  entry.item.time.seconds = row.time;
  return entry;
}

Marks marks_in(const Item& item) { return make_marks(item.flags, item.words); }

ByteView message_in(ByteView file, const Range& range) {
  return file.subspan(range.header, range.end - range.header);
}

Error message_changed(const std::string& path) {
  return Error(ErrorCode::busy, fmt::format("a message in {} is not as it was", printable(path)));
}

Result<void> BoxChange::begin(std::optional<Table> table) {
  const auto size = static_cast<std::uint64_t>(box_.info().st_size);
  if (size > options_.most_bytes) return cannot_hold(place_.path, "is too large to be changed");
  Bytes head(std::min<std::uint64_t>(size, kMostEnvelope));
  KIN_TRY(read_up_to_at(box_.fd(), head, 0, place_.path));
  if (!head.empty() && !begins_as_mbox(as_text(head)))
    return cannot_hold(place_.path, "is there and is no mbox");
  line_end_ = line_end_of(as_text(head));
  if (table) {
    table_ = *std::move(table);
    return {};
  }
  KIN_TRY_ASSIGN(file_, box_.read_all());
  table_ = Table::of(file_);
  return {};
}

Result<Marks> BoxChange::marks_at(const Row& row) const {
  Bytes message(row.range.end - row.range.header);
  KIN_TRY(read_up_to_at(box_.fd(), message, row.range.header, place_.path));
  return marks_of(message);
}

std::size_t BoxChange::count(const Digest& digest) const {
  std::size_t out = table_.equal_to(digest).size();
  for (const auto& [at, edit] : edits_) out -= edit.is_removed && table_.rows()[at].digest == digest ? 1 : 0;
  for (const Added& added : added_) out += added.row.digest == digest ? 1 : 0;
  return out;
}

Result<std::size_t> BoxChange::add(ByteView content, const Item& item) {
  Added added{{}, {}, marks_in(item)};
  added.row.digest = hash(content);
  added.row.size = content.size();
  if (count(added.row.digest) > item.copy)
    return tell({Answer::Kind::same_as, item.copy, added.row.digest, {}});
  auto message = make_message(content, added.marks, line_end_);
  if (!message)
    return cannot_hold(place_.path, "is an mbox, which cannot hold this message with its keywords");
  std::string sender = sender_of_name(item.name), envelope = make_envelope(sender, item.time, line_end_);
  // What an envelope cannot have, such as another date, is not put into one.
  if (sender.empty() || envelope_sender(envelope) != sender)
    envelope = make_envelope(guess_sender(content), item.time, line_end_);
  added.row.time = envelope_time(envelope);
  append(added.message, as_bytes(envelope));
  append(added.message, *message);
  append(added.message, as_bytes(line_end_));
  const std::vector<Range> ranges = find_messages(added.message);
  if (ranges.size() != 1 || make_row(added.message, ranges[0]).digest != added.row.digest)
    return cannot_hold(place_.path, "is an mbox, which cannot hold this message");
  added_.push_back(std::move(added));
  return tell({Answer::Kind::added, added_.size() - 1, {}, {}});
}

// Nothing if it is gone; busy if it has not the marks that it had and not those that are `wanted` either.
Result<std::optional<std::uint32_t>> BoxChange::find(const Entry& entry, const Marks* wanted) const {
  const std::optional<std::uint32_t> gone;
  const Row* const row = table_.find(entry.local);
  if (row == nullptr) return gone;
  const auto at = static_cast<std::uint32_t>(row - table_.rows().data());
  if (const auto edit = edits_.find(at); edit != edits_.end() && edit->second.is_removed) return gone;
  const Marks marks = marks_of(message_in(file_, row->range));
  if (marks != marks_in(entry.item) && (wanted == nullptr || marks != *wanted))
    return message_changed(place_.path);
  return std::optional(at);
}

Result<std::size_t> BoxChange::update(const Entry& entry, const Item& item) {
  Marks marks = marks_in(item);
  KIN_TRY_ASSIGN(const std::optional<std::uint32_t> found, find(entry, &marks));
  if (!found) return message_changed(place_.path);
  const std::uint32_t at = *found;
  const Row& row = table_.rows()[at];
  const auto edited = edits_.find(at);
  const ByteView before =
      edited != edits_.end() ? ByteView(edited->second.message) : message_in(file_, row.range);
  if (marks_of(before) != marks) {
    Bytes message = with_marks(before, marks, line_end_);
    if (hash(content_of(message)) != row.digest || marks_of(message) != marks) {
      auto made = make_message(content_of(before), marks, line_end_);
      if (!made) return cannot_hold(place_.path, "is an mbox, which cannot hold these keywords");
      message = *std::move(made);
    }
    edits_[at] = {false, std::move(message), std::move(marks)};
  }
  return tell({Answer::Kind::row, at, {}, {}});
}

Result<std::size_t> BoxChange::remove(const Entry& entry) {
  KIN_TRY_ASSIGN(const std::optional<std::uint32_t> at, find(entry, nullptr));
  if (at) edits_[*at].is_removed = true;
  return tell({Answer::Kind::removed, 0, {}, entry});
}

std::string BoxChange::added_text(std::string_view before) const {
  std::string out = added_.empty() ? "" : missing_end(before, line_end_);
  for (const Added& added : added_) out += as_text(added.message);
  return out;
}

Bytes BoxChange::whole_text() const {
  const std::vector<Row>& rows = table_.rows();
  Bytes out, file_fields;
  out.reserve(file_.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const Range& range = rows[i].range;
    const std::uint64_t next = i + 1 < rows.size() ? rows[i + 1].range.begin : file_.size();
    const auto edit = edits_.find(i);
    ByteView message = message_in(file_, range);
    const bool is_removed = edit != edits_.end() && edit->second.is_removed;
    // Lost, every reader of mail by IMAP would fetch all messages again.
    if (i == 0 && is_removed) file_fields = file_fields_of(message);
    if (is_removed) continue;
    if (edit != edits_.end()) message = edit->second.message;
    Bytes with;
    if (out.empty() && !file_fields.empty() && file_fields_of(message).empty())
      message = with = with_fields(message, file_fields);
    append(out, ByteView(file_).subspan(range.begin, range.header - range.begin));
    if (out.back() != '\n' && !message.empty()) append(out, as_bytes(line_end_));
    append(out, message);
    append(out, ByteView(file_).subspan(range.end, next - range.end));
  }
  append(out, as_bytes(added_text(as_text(out))));
  return out;
}

Result<void> BoxChange::append_added() {
  const auto size = static_cast<std::uint64_t>(box_.info().st_size);
  const std::uint64_t begin = table_.rows().empty() ? 0 : table_.rows().back().range.begin;
  // From the last message on, as it will be: nothing before that can be affected.
  Bytes tail(size - begin);
  KIN_TRY(read_up_to_at(box_.fd(), tail, begin, place_.path));
  const std::string text = added_text(as_text(tail));
  if (size + text.size() > options_.most_bytes)
    return cannot_hold(place_.path, "would be too large for an mbox");
  append(tail, as_bytes(text));
  std::vector<Row> rows;
  for (const Range& range : find_messages(tail)) {
    rows.push_back(make_row(tail, range));
    Range& at = rows.back().range;
    at = {at.begin + begin, at.header + begin, at.end + begin};
  }
  const std::size_t had = table_.rows().empty() ? 0 : 1;
  bool is_right = rows.size() == had + added_.size();
  for (std::size_t i = 0; is_right && i < added_.size(); ++i)
    is_right = rows[had + i].digest == added_[i].row.digest;
  if (!is_right) return cannot_hold(place_.path, "would not come out right");
  KIN_TRY(box_.append(as_bytes(text)));
  // The last one goes further than before, and is another message if it ended within a line.
  if (had == 1) table_.drop_last();
  table_.add(std::move(rows));
  return {};
}

Result<void> BoxChange::rewrite() {
  const Bytes text = whole_text();
  if (text.size() > options_.most_bytes) return cannot_hold(place_.path, "would be too large for an mbox");
  Table after = begins_as_mbox(as_text(text)) ? Table::of(text) : Table();
  // Prove it before the old one is gone.
  std::size_t at = 0;
  bool is_right = true;
  const auto expect = [&](const Digest& digest, const Marks* marks) {
    is_right = is_right && at < after.rows().size() && after.rows()[at].digest == digest &&
               (marks == nullptr || marks_of(message_in(text, after.rows()[at].range)) == *marks);
    ++at;
  };
  std::vector<std::uint64_t> known;
  for (std::uint32_t i = 0; i < table_.rows().size(); ++i) {
    const Row& row = table_.rows()[i];
    known.push_back(row.number());
    const auto edit = edits_.find(i);
    const bool is_edited = edit != edits_.end();
    const bool ends_in_line = row.range.end == file_.size() && !file_.empty() && file_.back() != '\n';
    if (is_edited && edit->second.is_removed) continue;
    if (ends_in_line && !added_.empty()) {
      ++at;  // its line is ended now, so it is another one
    } else {
      expect(row.digest, is_edited ? &edit->second.marks : nullptr);
    }
  }
  for (const Added& added : added_) expect(added.row.digest, &added.marks);
  if (!is_right || at != after.rows().size()) return cannot_hold(place_.path, "would not come out right");
  MemoryView source(text);
  KIN_TRY(box_.replace(source, known));
  table_ = std::move(after);
  return {};
}

Result<void> BoxChange::commit() {
  if (edits_.empty() && added_.empty()) return {};
  KIN_TRY(edits_.empty() ? append_added() : rewrite());
  box_.keep_times(!added_.empty());
  return {};
}

Result<Entry> BoxChange::answer(std::size_t number) const {
  const Answer& answer = answers_[number];
  std::size_t at = answer.at;
  if (answer.kind == Answer::Kind::removed) return answer.entry;
  if (answer.kind == Answer::Kind::same_as) {
    const std::vector<const Row*> equal = table_.equal_to(answer.digest);
    if (at >= equal.size()) return message_changed(place_.path);
    at = static_cast<std::size_t>(equal[at] - table_.rows().data());
  } else if (answer.kind == Answer::Kind::added) {
    at += table_.rows().size() - added_.size();
  } else {
    // What was removed before it is no longer there; if it was itself, a later change of the same batch did
    // that.
    for (const auto& [row, edit] : edits_) {
      if (edit.is_removed && row == answer.at) return message_changed(place_.path);
      at -= edit.is_removed && row < answer.at ? 1 : 0;
    }
  }
  const Row& row = table_.rows()[at];
  KIN_TRY_ASSIGN(Marks marks, marks_at(row));
  return entry_of(folder_, row, std::move(marks));
}

}  // namespace kin::sync::mbox
