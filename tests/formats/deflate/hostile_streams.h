// Deflate streams that no encoder writes, made to take whoever searches for their matches as long as can be.
#pragma once

#include "formats/deflate/emit.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <algorithm>
#include <vector>

namespace kin::testing {

// Blocks with fixed codes, as long as zlib's. Literals are taken from `letters` by turns.
inline Bytes stream_of(const std::vector<formats::deflate::Token>& tokens, ByteView letters) {
  namespace deflate = formats::deflate;
  constexpr std::size_t kBlockTokens = 16383;
  deflate::BitWriter out;
  Bytes plain;
  std::size_t literals = 0;
  for (std::size_t first = 0; first < tokens.size(); first += kBlockTokens) {
    deflate::Block block;
    block.type = deflate::BlockType::fixed;
    block.final = first + kBlockTokens >= tokens.size();
    const std::size_t start = plain.size();
    for (std::size_t i = first; i < std::min(tokens.size(), first + kBlockTokens); ++i) {
      const deflate::Token token = tokens[i];
      block.tokens.push_back(token);
      if (token.is_literal()) plain.push_back(letters[literals++ % letters.size()]);
      for (std::size_t n = 0; !token.is_literal() && n < token.length; ++n)
        plain.push_back(plain[plain.size() - token.distance]);
    }
    require_ok(deflate::write_block(out, block, {}, plain.data() + start));
  }
  out.put(0, (8 - out.bits_in_last_byte()) % 8);
  return out.take();
}

// Text of two letters, with matches of random length from anywhere: none of the encoders that are tried
// leaves the race early, and all have long chains.
inline Bytes two_letters(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  std::vector<formats::deflate::Token> tokens(40);
  for (std::size_t at = tokens.size(); at < size;) {
    const auto distance = 1 + random.below(std::min<std::uint64_t>(at, 32768));
    tokens.push_back(
        {static_cast<std::uint16_t>(3 + random.below(17)), static_cast<std::uint16_t>(distance)});
    at += tokens.back().length;
    if (random.below(3) == 0) tokens.emplace_back(), ++at;
  }
  Bytes letters = random_bytes(seed, 1009);
  for (std::uint8_t& letter : letters) letter = letter % 2 == 0 ? 'a' : 'b';
  return stream_of(tokens, letters);
}

// Zeros, of which every fourth match is from far away: each chain is as long as can be, and each place of it
// is the same for as long as can be.
inline Bytes far_zeros(std::size_t matches) {
  std::vector<formats::deflate::Token> tokens(1);
  for (std::size_t i = 0; i < matches; ++i)
    tokens.push_back({258, static_cast<std::uint16_t>(i > 20 && i % 4 == 3 ? 4090 : 1)});
  return stream_of(tokens, Bytes{0});
}

}  // namespace kin::testing
