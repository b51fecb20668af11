// BlockEnd: tells after each token whether the encoder would end its block.
#pragma once

#include "formats/deflate/parameters.h"
#include "formats/deflate/token.h"

#include <algorithm>
#include <cstdint>

namespace kin::formats::deflate {

class BlockEnd {
 public:
  // `plain` is where the block's bytes begin, and there are so many of the stream `before` it: all, or 4096
  // at least.
  BlockEnd(const Parameters& parameters, const std::uint8_t* plain, std::size_t before)
      : rule_(parameters.rule),
        most_((1U << parameters.block_log) - 1),
        truncates_(parameters.parser == Parser::lazy || parameters.insert_most >= 6),
        counts_ahead_(parameters.parser == Parser::lazy) {
    if (rule_ != BlockRule::rsyncable) return;
    at_ = plain;
    summed_ = std::min(before, kSumBytes);
    for (std::size_t i = 1; i <= summed_; ++i) sum_ += plain[-static_cast<std::ptrdiff_t>(i)];
  }

  bool after(Token token) {
    ++tokens_;
    switch (rule_) {
      case BlockRule::none:
        return false;
      case BlockRule::tokens:
        return tokens_ == most_;
      case BlockRule::bytes:
        plain_ += token.length;
        return plain_ == most_;
      case BlockRule::gzip:
        return gzip_after(token);
      case BlockRule::rsyncable: {
        const bool even = sum_after(token);
        return gzip_after(token) || even;
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t kSumBytes = 4096;

  bool gzip_after(Token token) {
    // gzip's lazy parser looks at the block's length when it is one byte into the token, its fast one before.
    const std::uint64_t length = plain_ + (counts_ahead_ ? 1 : 0);
    plain_ += token.length;
    if (!token.is_literal()) {
      ++matches_;
      distance_bits_ += 5 + std::uint64_t{kDistanceCodes[distance_symbol(token.distance)].extra_bits};
    }
    if (tokens_ == 32767) return true;
    if (tokens_ % 4096 != 0 || !truncates_) return false;
    const std::uint64_t out = (8 * tokens_ + distance_bits_) / 8;
    return matches_ < tokens_ / 2 && out < length / 2;
  }

  // Whether the sum of the last bytes was a multiple anywhere in the token.
  bool sum_after(Token token) {
    bool out = false;
    for (std::uint32_t i = 0; i < token.length; ++i, ++at_) {
      sum_ += *at_;
      if (summed_ < kSumBytes) {
        ++summed_;
        continue;
      }
      sum_ -= *(at_ - kSumBytes);
      if (sum_ % kSumBytes == 0) out = true;
    }
    return out;
  }

  BlockRule rule_;
  std::uint64_t most_;
  bool truncates_;  // gzip does from level 3 on
  bool counts_ahead_;
  std::uint64_t tokens_ = 0, plain_ = 0, matches_ = 0, distance_bits_ = 0;
  const std::uint8_t* at_ = nullptr;
  std::size_t summed_ = 0;
  std::uint32_t sum_ = 0;
};

}  // namespace kin::formats::deflate
