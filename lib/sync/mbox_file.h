// An mbox file as bytes: where its messages are, and which. Knows nothing of files, locks or stores.
//
// A message begins at a line "From WHO DATE", its envelope, at the beginning of the file or behind an empty
// line, and ends before the empty line that is behind it. Everything is told by offsets, so that what is not
// changed is put back as it was. What a message is without its envelope: mbox_message.h.
//
// Any bytes are good enough for these functions. A Table is for one thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/sync/mbox_message.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kin::sync::mbox {

// A longer line is no envelope.
inline constexpr std::size_t kMostEnvelope = 1024;

// Of one message: the envelope is [begin, header), the message [header, end), and then comes an empty line,
// or nothing at the end of the file. All are offsets in the file.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t header = 0;
  std::uint64_t end = 0;
};

// Whether the first line is an envelope; at most kMostEnvelope bytes of `head` are looked at.
bool begins_as_mbox(std::string_view head);
// Of a file that begins as one. Each message ends where the next one begins, so that nothing is between them.
std::vector<Range> find_messages(ByteView file);
// "\r\n" if the envelope of the first message ends so.
std::string_view line_end_of(std::string_view head);

// Seconds since 1970 as if the date were UTC; 0 if there is none.
std::int64_t envelope_time(std::string_view envelope);
// Who sent it, by that: any words. Empty if it is no envelope.
std::string envelope_sender(std::string_view envelope);
std::string make_envelope(std::string_view sender, Timestamp time, std::string_view line_end);

// The messages of a file by what they are, without their bytes. A message's name is made of its content and
// of how many equal ones are before it, so that it is the same wherever the message stands.
struct Row {
  Range range;
  Digest digest{};  // of the content
  std::uint64_t size = 0;
  std::int64_t time = 0;
  std::uint32_t ordinal = 0;
  std::string sender;  // of the envelope, if it is not guess_sender()

  std::uint64_t number() const;  // the beginning of the digest
  std::string local() const;
};

class Table {
 public:
  static Table of(ByteView file);

  const std::vector<Row>& rows() const { return rows_; }              // as they are in the file
  const std::vector<std::uint32_t>& order() const { return order_; }  // by local()
  const Row* find(const std::string& local) const;
  std::vector<const Row*> equal_to(const Digest& digest) const;  // in the order of the file
  // Behind the last one; ordinals are given here. References to rows are void then.
  void add(std::vector<Row> rows);
  void drop_last();

 private:
  using Rows =
      std::pair<std::vector<std::uint32_t>::const_iterator, std::vector<std::uint32_t>::const_iterator>;
  Rows alike(const Digest& digest) const;  // those with the same number()

  std::vector<Row> rows_;
  std::vector<std::uint32_t> order_;
};

// `range` is where it is, in the bytes given and in the row; the ordinal is left to the table.
Row make_row(ByteView file, const Range& range);

}  // namespace kin::sync::mbox
