// FastPredictor: Go's compress/flate at level 1, and its relatives in the manner of Snappy.
//
// It remembers one place for each hash of four bytes, takes whatever match that one gives, and looks at fewer
// and fewer places the longer it finds nothing. It begins anew with each block, which it knows whole, but
// remembers the places of those before; unless a block is so short that it looks for nothing in it.
//
// Taken for a parser with chains that are never walked, it needs corrections of 9 to 22 %, since it skips and
// forgets other places; so, 0.04 %.
#pragma once

#include "formats/deflate/hash_functions.h"
#include "formats/deflate/predictor.h"

#include <cstdint>
#include <vector>

namespace kin::formats::deflate {

class FastPredictor final : public Predictor {
 public:
  explicit FastPredictor(std::uint32_t hash_bits);

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override;
  void begin_block(std::uint32_t, std::uint32_t, ByteView, ByteView) override {}
  // Another `limit` than before begins a block.
  Token predict(std::uint32_t at, std::uint32_t limit) override;
  Token match_instead() const override { return found_; }
  void advance(std::uint32_t at, Token token) override;
  std::optional<std::uint32_t> hops_to(std::uint32_t at, std::uint32_t length,
                                       std::uint32_t distance) override;
  std::optional<std::uint32_t> distance_of(std::uint32_t at, std::uint32_t length,
                                           std::uint32_t hops) override;
  void flushed(std::uint32_t) override {}
  void restart(std::uint32_t at) override;

 private:
  void start_block(std::uint32_t at, std::uint32_t limit);
  void forget();
  // Remembers `at`, and gives the place that its hash had before.
  std::int32_t replace(std::uint32_t at);
  // Whether this is a place to look at, and which is the next.
  bool looks_at(std::uint32_t at);

  MultipliedHash<true> hash_;
  const std::uint8_t* bytes_ = nullptr;
  std::vector<std::int32_t> places_;  // by hash
  std::uint32_t limit_ = 0;           // the block's end
  std::uint32_t next_ = 0;            // the place to look at next; 0 if none in this block
  std::uint32_t skip_ = 0;            // in 1/32: the way to the one after it
  bool after_match_ = false;
  Token found_;
};

}  // namespace kin::formats::deflate
