// A message of an mbox file as bytes, without its envelope: what it is without what mbox adds to it, and how
// it is put back. Knows nothing of files, locks or stores.
//
// Its *content* is the message as it would be in a Maildir: without the header fields in which mbox keeps
// flags and numbers. Of some content that cannot be told from an mbox: such a message has a field
// "X-Kin-Quoted" in its header. Then each line that is ">From ", with any number of ">", has one ">" more
// than in the content, and those header fields that mbox would take for its own have a name that begins with
// "X-Kin-Kept-". With the value 2, the last "\n" is no part of the content either.
//
// Functions without state, for any thread, and any bytes are good enough for them.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kin::sync::mbox {

inline constexpr std::string_view kEnvelopeStart = "From ";

// What mbox keeps in header fields: flags as in Item, and keywords in order, none twice.
struct Marks {
  std::uint8_t flags = 0;
  std::vector<std::string> words;

  bool operator==(const Marks&) const = default;
};
// The keyword "$Forwarded" is the flag kPassed: mbox has no other place for that.
Marks make_marks(std::uint8_t flags, std::vector<std::string> words);

Bytes content_of(ByteView message);
Marks marks_of(ByteView message);
// The same message, with the fields of flags and keywords changed where they are, and no other byte.
Bytes with_marks(ByteView message, const Marks& marks, std::string_view line_end);
// Where mail readers keep numbers for the whole file: in the header of its first message. Empty if there are
// none.
Bytes file_fields_of(ByteView message);
Bytes with_fields(ByteView message, ByteView fields);

// The message that has this content and these marks. Nothing if there can be none, as with a keyword that has
// a space in it. What is returned was read again and compared.
std::optional<Bytes> make_message(ByteView content, const Marks& marks, std::string_view line_end);

// Every field of the header: its name in lower case, and all of it.
void for_each_field(std::string_view message,
                    const std::function<void(std::string_view name, std::string_view field)>& on_field);
// Behind its colon.
std::string_view value_of_field(std::string_view field);

}  // namespace kin::sync::mbox
