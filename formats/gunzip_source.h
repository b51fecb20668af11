// GunzipSource: what a gzip file (RFC 1952) of any number of members holds, with its checksums compared; what
// libarchive's own decoder does not do, so that a damaged tar.gz would pass for a whole one. The source must
// outlive it. One thread at a time.
#pragma once

#include "lib/container/byte_source.h"

#include <memory>

namespace kin::formats {

bool looks_like_gzip(ByteView head);

class GunzipSource : public ByteSource {
 public:
  explicit GunzipSource(ByteSource& source);
  ~GunzipSource() override;

  // corrupt: damaged or cut off. What follows the last member is ignored, as gzip does.
  Result<std::size_t> read(std::span<std::uint8_t> into) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin::formats
