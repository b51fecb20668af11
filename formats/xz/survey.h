// Survey: what .xz streams take to be opened, from their headers alone.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>

namespace kin::formats::xz {

struct Survey {
  std::uint64_t plain_bytes = 0;
  std::uint64_t table_bytes = 0;  // the most that a block takes, if a tree is searched
};

// As far as it is streams, and as far as their chunks can be told apart.
Survey survey_streams(ByteView file);

}  // namespace kin::formats::xz
