// Predictor: what an encoder with given Parameters would do next. It always goes on from what the encoder
// really did, so one wrong prediction does not lead to others.
//
// It is a function of the parameters, the plain bytes, and the calls so far, and of nothing else: opener and
// rebuilder make the same calls and get the same answers. One thread at a time.
#pragma once

#include "formats/deflate/parameters.h"
#include "formats/deflate/search_work.h"
#include "formats/deflate/token.h"
#include "lib/base/bytes.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kin::formats::deflate {

// The least position: 0 stands for none.
inline constexpr std::uint32_t kFirstPosition = 8;
inline constexpr std::size_t kReadBeyond = kMostMatch + 16;

struct SearchTables;

class Predictor {
 public:
  // Positions are places in a buffer that others keep; the bytes from `first` on will be predicted. The
  // tables are new, or have forgotten everything, and are the predictor's own until it is gone. It counts its
  // searches in `work`, and what it answers once that is spent is of no use.
  static std::unique_ptr<Predictor> make(const Parameters& parameters, std::uint32_t first,
                                         SearchTables& tables, SearchWork& work);
  virtual ~Predictor() = default;

  // The buffer; what was in it before is still there, `dropped` earlier in it than it was. At least
  // kReadBeyond bytes behind its end may be read, and all before `first`.
  virtual void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) = 0;

  // What is known of a block before its tokens, with parameters whose parser is Parser::optimal: where it
  // ends, and the code lengths of its symbols.
  virtual void begin_block(std::uint32_t at, std::uint32_t end, ByteView lit_len, ByteView distance) = 0;

  // The token at `at`, for an encoder that knows its input up to `limit`.
  virtual Token predict(std::uint32_t at, std::uint32_t limit) = 0;
  // What `predict`, which was called last, would have taken there if it had to be a match; a literal if it
  // knows of none.
  virtual Token match_instead() const = 0;
  // The real token at `at`, for which predict was called; with Parser::greedy it need not have been.
  virtual void advance(std::uint32_t at, Token token) = 0;

  // Which of the earlier places with the same `length` bytes, from the nearest, is at this distance; nothing
  // if it is not among those known. And back.
  virtual std::optional<std::uint32_t> hops_to(std::uint32_t at, std::uint32_t length,
                                               std::uint32_t distance) = 0;
  virtual std::optional<std::uint32_t> distance_of(std::uint32_t at, std::uint32_t length,
                                                   std::uint32_t hops) = 0;

  // The encoder's input was flushed here.
  virtual void flushed(std::uint32_t at) = 0;
  // Knows the 32 KiB before `at` as if all of it had been inserted, and nothing before.
  virtual void restart(std::uint32_t at) = 0;
};

}  // namespace kin::formats::deflate
