// BlockEnd: tells after each token whether the encoder would end its block.
#pragma once

#include "formats/deflate/parameters.h"
#include "formats/deflate/token.h"

#include <cstdint>

namespace kin::formats::deflate {

class BlockEnd {
 public:
  explicit BlockEnd(const Parameters& parameters)
      : rule_(parameters.rule),
        most_((1U << parameters.block_log) - 1),
        truncates_(parameters.parser == Parser::lazy || parameters.insert_most >= 6),
        counts_ahead_(parameters.parser == Parser::lazy) {}

  bool after(Token token) {
    ++tokens_;
    if (rule_ == BlockRule::tokens) {
      return tokens_ == most_;
    }
    if (rule_ == BlockRule::none) return false;
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

 private:
  BlockRule rule_;
  std::uint64_t most_;
  bool truncates_;  // gzip does from level 3 on
  bool counts_ahead_;
  std::uint64_t tokens_ = 0, plain_ = 0, matches_ = 0, distance_bits_ = 0;
};

}  // namespace kin::formats::deflate
