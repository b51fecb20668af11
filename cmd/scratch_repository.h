// ScratchRepository: a repository that nobody will open again, for who asks what one would take. It is gone
// with this object, and if the process is killed, with the next one that is made in the same place.
#pragma once

#include "lib/base/file.h"
#include "store/repository.h"

#include <cstdint>
#include <memory>
#include <string>

namespace kin::cmd {

class ScratchRepository {
 public:
  struct Sketches {
    unsigned features = Scanner::kDefaultFeatures;  // the most in one
    std::size_t window_bytes = Scanner::kWindowBytes;
  };
  // Below `parent`, which is made if need be.
  static Result<std::unique_ptr<ScratchRepository>> make(const std::string& parent, const Sketches& sketches);
  ~ScratchRepository();
  ScratchRepository(const ScratchRepository&) = delete;
  ScratchRepository& operator=(const ScratchRepository&) = delete;

  store::Repository& repository() { return *repository_; }
  const std::string& directory() const { return directory_; }
  // Of all files that a repository consists of, beyond what an empty one takes.
  Result<std::uint64_t> stored_bytes() const;

 private:
  ScratchRepository(std::string directory, Fd lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}

  Result<std::uint64_t> count_bytes() const;

  const std::string directory_;
  const Fd lock_;
  std::uint64_t empty_bytes_ = 0;
  std::unique_ptr<store::Repository> repository_;
};

}  // namespace kin::cmd
