// BlockEncoder: the plain bytes of a block to the chunks of LZMA2, as an encoder with these settings writes
// them. One thread at a time.
//
// It goes by what has come in so far: 4,370 bytes are left until more comes, or the end. So the pieces in
// which the bytes come make no difference.
#pragma once

#include "formats/xz/lzma.h"
#include "lib/base/result.h"

#include <memory>
#include <utility>

namespace kin::formats::xz {

class BlockEncoder {
 public:
  virtual ~BlockEncoder() = default;

  virtual void add(ByteView plain) = 0;
  // No more comes. The last chunk, and the byte that ends them all.
  virtual void finish() = 0;
  // The chunks that were finished since the last call.
  Bytes take() { return std::exchange(chunks_, {}); }
  // How many plain bytes are in the chunks that were finished so far.
  std::uint64_t finished_plain_bytes() const { return finished_plain_bytes_; }
  // Of the chunk that is not finished, what will be behind its header if it is a compressed one.
  virtual ByteView unfinished() const { return {}; }
  // What it took so far, as formats/deflate/search_work.h counts it.
  virtual std::uint64_t steps() const { return 0; }

 protected:
  Bytes chunks_;
  std::uint64_t finished_plain_bytes_ = 0;
};

// What it takes to make one, in steps: tables are cleared, some of them touched.
inline constexpr std::uint64_t kStepsOfEncoder = 1U << 15;

// unsupported: there is no room for its tables. What is added must keep them within kMostTableBytes
// (table_bytes). `first_position` is for tests of what happens at 2^32.
Result<std::unique_ptr<BlockEncoder>> make_block_encoder(const Settings& settings,
                                                         std::uint32_t first_position = 0);

}  // namespace kin::formats::xz
