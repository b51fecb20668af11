// KeyStore: numbers in their order, and the files that have them; a question is a range. The one thing that
// SimiHash asks of a database. One thread at a time.
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
  // The files whose keys are in [low, high], in the order of keys, then of files; at most `most`.
  virtual Result<std::vector<std::uint32_t>> find(std::uint64_t low, std::uint64_t high,
                                                  std::size_t most) const = 0;
  // What it occupies, about.
  virtual std::uint64_t bytes() const = 0;
};

// An empty one. Detectors that need none do not call it.
using MakeKeyStore = std::function<Result<std::unique_ptr<KeyStore>>()>;

}  // namespace kin
