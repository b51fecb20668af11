// BlockProof: finds the settings that a block was written with, and proves that they give its bytes. One
// thread at a time.
//
// The settings are searched for with the first megabyte of content or so; most wrong ones fail at once. The
// encoder that has got so far goes on from there.
#pragma once

#include "formats/xz/block_encoder.h"
#include "formats/xz/chunk_header.h"
#include "lib/base/result.h"
#include "lib/container/search_budget.h"

#include <optional>

namespace kin::formats::xz {

class BlockProof {
 public:
  // `previous`: of the block before. `guess`: once settings are found they are taken to be right. What would
  // take more for the tables is refused. The budget, if given, must outlive it.
  BlockProof(std::uint32_t dictionary_bytes, const std::optional<Settings>& previous, bool guess,
             std::uint64_t most_table_bytes, SearchBudget* budget);

  // The next chunk as it stands there, and what it holds. unsupported: no known encoder writes it so, or it
  // takes too much to find out.
  Result<void> add(const ChunkHeader& header, ByteView chunk, ByteView plain);
  // After the last chunk.
  Result<void> finish();

  // Once they are found; at the end they are.
  const std::optional<Settings>& settings() const { return settings_; }
  // Of the block's plain bytes, how many are proven.
  std::uint64_t proven_bytes() const { return proven_bytes_; }

 private:
  Result<void> choose(bool ended);
  Result<bool> fits(const Settings& settings, bool ended);
  Result<void> compare();
  Result<void> spend();

  const bool guess_;
  const std::uint64_t most_table_bytes_;
  SearchBudget* const budget_;
  const std::optional<Settings> previous_;
  Settings known_;  // what the block says
  bool first_is_stored_ = false, has_properties_ = false;
  std::optional<Settings> settings_;
  std::unique_ptr<BlockEncoder> encoder_;  // none: it is a guess, or the settings are not found yet
  std::uint64_t steps_ = 0;                // of the encoder that were counted
  Bytes trial_;                            // plain bytes, until the settings are found
  Bytes expected_;                         // chunks that are not proven
  std::size_t expected_at_ = 0;
  std::uint64_t plain_bytes_ = 0, proven_bytes_ = 0;
};

}  // namespace kin::formats::xz
