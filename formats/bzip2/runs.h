// The first stage: four equal bytes are followed by one that says how many more there are.
//
// bzip2 counts at most 251 more, other encoders 255. A block is what some plain bytes give, each run as long
// as it can be; where an encoder ends a block in a run, the next block begins a run of its own.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <span>
#include <utility>

namespace kin::formats::bzip2 {

inline constexpr std::size_t kRunStart = 4;
inline constexpr std::size_t kUsualRun = 255, kLongRun = 259;
// Of a block: nothing but long runs.
inline constexpr std::uint64_t kMostPlainBytes = std::uint64_t{900'000} / 5 * kLongRun;

// Plain bytes to a block. One thread at a time.
class RunEncoder {
 public:
  explicit RunEncoder(std::size_t most_run) : most_run_(most_run) {}

  // In pieces as they come.
  void add(ByteView plain);
  // Ends the last run. The block so far is at most one run short before.
  Bytes finish();
  std::size_t size() const { return block_.size(); }

 private:
  void end_run();

  const std::size_t most_run_;
  Bytes block_;
  std::uint8_t byte_ = 0;
  std::size_t run_ = 0;  // of byte_, not yet in the block
};

// A block to plain bytes, in pieces as they are asked for. One thread at a time.
class RunExpander {
 public:
  RunExpander() = default;
  explicit RunExpander(Bytes block) : block_(std::move(block)) {}

  // Fills `into`, or less of it at the end and only there.
  std::size_t read(std::span<std::uint8_t> into);
  const Bytes& block() const { return block_; }
  void restart();

 private:
  Bytes block_;
  std::size_t at_ = 0;
  std::size_t equal_ = 0;   // bytes before at_ that are equal, up to kRunStart
  std::size_t repeat_ = 0;  // more of the byte before at_ to give
  std::uint8_t byte_ = 0;
};

// Whether a block has runs longer than bzip2 makes them.
bool has_long_runs(ByteView block);

}  // namespace kin::formats::bzip2
