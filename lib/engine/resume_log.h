// ResumeLog: what an unfinished backup has done already, so that the next one need not read it again.
// Only a hint: an entry counts if the objects that it names are stored. Thread-safe.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kin {

class ResumeLog {
 public:
  virtual ~ResumeLog() = default;
  virtual Result<void> record(const std::vector<std::pair<std::string, Bytes>>& entries) = 0;
  virtual Result<std::optional<Bytes>> recorded(const std::string& path) = 0;
  // Those whose path starts so.
  virtual Result<void> clear_records(const std::string& prefix) = 0;
};

}  // namespace kin
