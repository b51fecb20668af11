#pragma once

#include "lib/engine/backup.h"

namespace kin::testing {

// Of the directory `path`, which is to be `tree` in the snapshot.
inline BackupRequest request_for(const std::string& path) {
  BackupRequest request;
  request.walk.sources = {{path, {"tree"}}};
  request.snapshot.time = {1'700'000'000, 0};
  request.snapshot.paths = {path};
  return request;
}

}  // namespace kin::testing
