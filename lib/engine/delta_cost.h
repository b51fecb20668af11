// What a file would take as a delta, and alone. One thread at a time: it has an encoder.
#pragma once

#include "lib/base/result.h"
#include "lib/delta/codec.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace kin {

class DeltaCost {
 public:
  // Content up to this is encoded in memory, by zstd at a backup's quick level; larger files by xdelta3,
  // window by window.
  static constexpr std::uint64_t kInMemoryBytes = 64 << 20;

  DeltaCost();

  // Bytes of `target` as the difference from `base`: files, of any size.
  Result<std::uint64_t> of_files(const std::string& base, const std::string& target,
                                 const std::stop_token& stop = {});
  // The same of content; an empty base is none.
  Result<std::uint64_t> of(ByteView base, ByteView target);

 private:
  const std::unique_ptr<Codec> codec_;
};

}  // namespace kin
