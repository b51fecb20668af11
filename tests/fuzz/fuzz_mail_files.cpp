// Mailboxes and sequences from hostile bytes: whatever it is, it is read, and written again as it was.
#include "lib/base/check.h"
#include "lib/sync/mbox_file.h"
#include "lib/sync/mh_sequences.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kin;
  const ByteView bytes(data, size);
  const sync::MhSequences sequences = sync::MhSequences::parse(as_text(bytes));
  const std::string written = sequences.text();
  const sync::MhSequences again = sync::MhSequences::parse(written);
  for (const std::uint32_t number : {1U, 2U, 17U, 1000U})
    KIN_CHECK(sequences.marks_of(number) == again.marks_of(number));
  // Any content can be a message of a mailbox, and comes out of it as it was.
  if (const auto made = sync::mbox::make_message(bytes, {sync::kSeen, {}}, "\n"))
    KIN_CHECK(equal(sync::mbox::content_of(*made), bytes));
  if (!sync::mbox::begins_as_mbox(as_text(bytes.first(std::min(size, sync::mbox::kMostEnvelope))))) return 0;
  std::uint64_t at = 0;
  for (const sync::mbox::Range& range : sync::mbox::find_messages(bytes)) {
    KIN_CHECK(range.begin >= at && range.begin <= at + 2);  // an empty line is between them
    KIN_CHECK(range.begin <= range.header && range.header <= range.end && range.end <= size);
    at = range.end;
  }
  return 0;
}
