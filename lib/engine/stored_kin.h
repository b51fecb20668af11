// Which stored objects resemble a file: the question that a backup asks, for one file and without storing it.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/similarity/content_reader.h"

#include <stop_token>

namespace kin {

struct StoredKin {
  std::uint64_t objects = 0;   // that the file would be
  std::uint64_t features = 0;  // of all of them
  struct Found {
    ObjectId id;
    std::uint64_t matches = 0;  // features of the file that it has
    bool is_part = false;       // an object of the file itself: stored already
  };
  std::vector<Found> found;  // most matches first
  Bytes only;                // the content, if it is one object
};

// At most `most` objects. The time depends on the file's size, and hardly on the repository's.
Result<StoredKin> find_stored_kin(BlockStore& store, ContentReader& content, std::size_t most,
                                  const std::stop_token& stop);

}  // namespace kin
