// KeyStore: numbers in their order, and the files that have them; a question is what is near. The one thing
// that SimiHash asks of a database. One thread at a time.
#pragma once

#include "lib/base/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kin {

class KeyStore {
 public:
  virtual ~KeyStore() = default;

  virtual Result<void> add(std::uint64_t key, std::uint32_t file) = 0;
  // The files whose keys differ from `key` by at most `distance`, the nearest first; at most `most`. At the
  // same distance lower keys come first; of files with the same key, those that were added last, but of keys
  // above `key` those that were added first.
  virtual Result<std::vector<std::uint32_t>> find_nearest(std::uint64_t key, std::uint64_t distance,
                                                          std::size_t most) const = 0;
  // What it occupies, about.
  virtual std::uint64_t bytes() const = 0;
};

// An empty one. Detectors that need none do not call it.
using MakeKeyStore = std::function<Result<std::unique_ptr<KeyStore>>()>;

}  // namespace kin
