#include "formats/bzip2/runs.h"

#include <algorithm>
#include <utility>

namespace kin::formats::bzip2 {

void RunEncoder::end_run() {
  if (run_ == 0) return;
  block_.insert(block_.end(), std::min(run_, kRunStart), byte_);
  if (run_ >= kRunStart) block_.push_back(static_cast<std::uint8_t>(run_ - kRunStart));
  run_ = 0;
}

void RunEncoder::add(ByteView plain) {
  for (const std::uint8_t byte : plain) {
    if (byte != byte_ || run_ == most_run_) {
      if (run_ == 1) {  // by far the most frequent
        block_.push_back(byte_);
        run_ = 0;
      } else {
        end_run();
      }
      byte_ = byte;
    }
    ++run_;
  }
}

Bytes RunEncoder::finish() {
  end_run();
  return std::exchange(block_, {});
}

std::size_t RunExpander::read(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (repeat_ > 0) {
      const std::size_t size = std::min(repeat_, into.size() - done);
      std::fill_n(into.begin() + static_cast<std::ptrdiff_t>(done), size, byte_);
      repeat_ -= size;
      done += size;
      continue;
    }
    if (at_ == block_.size()) break;
    const std::uint8_t next = block_[at_++];
    if (equal_ == kRunStart) {
      repeat_ = next;
      equal_ = 0;
      continue;
    }
    equal_ = equal_ > 0 && next == byte_ ? equal_ + 1 : 1;
    byte_ = next;
    into[done++] = next;
  }
  return done;
}

void RunExpander::restart() {
  at_ = 0;
  equal_ = 0;
  repeat_ = 0;
}

bool has_long_runs(ByteView block) {
  std::size_t equal = 0;
  for (std::size_t at = 0; at < block.size(); ++at) {
    if (equal == kRunStart) {
      if (block[at] > kUsualRun - kRunStart) return true;
      equal = 0;
      continue;
    }
    equal = equal > 0 && block[at] == block[at - 1] ? equal + 1 : 1;
  }
  return false;
}

}  // namespace kin::formats::bzip2
