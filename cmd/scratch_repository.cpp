#include "cmd/scratch_repository.h"

#include "lib/base/text.h"
#include "store/cache_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace kin::cmd {

Result<std::unique_ptr<ScratchRepository>> ScratchRepository::make(const std::string& parent,
                                                                   const Sketches& sketches) {
  KIN_TRY(make_directories(parent, 0700));
  store::sweep_temporary_caches(parent);
  KIN_TRY_ASSIGN(store::TemporaryCache place, store::make_temporary_cache(parent));
  // From here on it is removed, whatever fails.
  std::unique_ptr<ScratchRepository> out(
      new ScratchRepository(std::move(place.directory), std::move(place.lock)));
  const std::string location = out->directory_ + "/repository";
  KIN_TRY(make_directories(location, 0700));
  KIN_TRY_ASSIGN(auto backend, store::open_backend(location));
  KIN_TRY(store::Repository::create(*backend, std::nullopt, {}, sketches.features));
  store::OpenOptions options;
  options.cache_directory = out->directory_ + "/cache";
  options.window_bytes = sketches.window_bytes;
  KIN_TRY_ASSIGN(out->repository_, store::Repository::open(std::move(backend), options));
  KIN_TRY(out->repository_->refresh_index());
  KIN_TRY_ASSIGN(out->empty_bytes_, out->count_bytes());
  return out;
}

ScratchRepository::~ScratchRepository() {
  repository_.reset();
  store::remove_temporary_cache(directory_);
}

Result<std::uint64_t> ScratchRepository::stored_bytes() const {
  KIN_TRY_ASSIGN(const std::uint64_t bytes, count_bytes());
  return bytes - std::min(bytes, empty_bytes_);
}

Result<std::uint64_t> ScratchRepository::count_bytes() const {
  std::error_code failed;
  std::uint64_t bytes = 0;
  for (std::filesystem::recursive_directory_iterator at(directory_ + "/repository", failed), end;
       !failed && at != end; at.increment(failed)) {
    if (at->is_regular_file(failed) && !failed) bytes += at->file_size(failed);
  }
  if (failed)
    return Error(ErrorCode::io, fmt::format("cannot read {}: {}", printable(directory_), failed.message()));
  return bytes;
}

}  // namespace kin::cmd
