// How formats hand out the next bytes of a container when they are no coded member.
#pragma once

#include "lib/container/container_format.h"

#include <cstdint>

namespace kin::formats {

// The next `size` bytes, or fewer at the end, as literal bytes: headers, padding. They are held in memory.
Result<void> take_literal(PeekSource& in, PartSink& out, std::size_t size);

// The same where nobody knows how long it may be: what is short is literal, and what is long a member that
// has no name, so that it is cut by content and opened if it is a container.
Result<void> take_gap(PeekSource& in, PartSink& out, std::uint64_t size);

// All that is left, as a gap.
Result<void> take_rest(PeekSource& in, PartSink& out);

// Once all of `in` was handed out and nothing of it was opened. What fits into memory had better stay closed:
// unsupported. What is larger may be a member of something that would have to stay closed with it.
Result<void> refuse_if_small(const PeekSource& in, const ContainerLimits& limits, const char* why);

}  // namespace kin::formats
