// A message with its encoded parts decoded, as it is compressed on its way: an attachment is then what the
// file was, and resembles the same file in other messages, whatever the lines of its base64.
//
// The opened form is a list of parts: 0 and a blob as it stands; or 1, a coding, the plain bytes and the
// corrections, both as blobs, of which the plain bytes may be an opened form themselves (2 instead of 1).
// Whoever opens a content closes it again and compares, so that what is sent as opened comes out as it was.
#pragma once

#include "lib/container/container_format.h"

#include <optional>

namespace kin::sync {

// Nothing: there is nothing in it that would be smaller, or it takes too long. The same for the same bytes on
// all machines with the same kin.
std::optional<Bytes> open_content(const Formats& formats, ByteView content);
// Exactly `size` bytes, or corrupt.
Result<Bytes> close_content(const Formats& formats, ByteView opened, std::size_t size);

}  // namespace kin::sync
