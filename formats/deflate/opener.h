// Opener: a raw deflate stream becomes its plain bytes and a reconstruction: what a Rebuilder needs, besides
// the plain bytes, to give back the exact stream, whichever program made it.
//
//     Opener opener(read, limits);
//     for (;;) { piece = opener.next(); if nothing: break; keep piece.plain and piece.reconstruction }
//
// A stream of any length is opened in pieces of a MiB or so, in bounded memory. Each piece was rebuilt and
// compared with the stream before it is handed out, unless OpenLimits::proven_later. Opener and Rebuilder are
// deterministic and use nothing but their own code, so what was rebuilt once will be again. One thread at a
// time.
//
// Errors: corrupt, where the bytes are no deflate stream; unsupported, where they are but cannot be opened:
// too large, or so unlike what any known encoder writes that it is not worth it. Otherwise those of `read`.
#pragma once

#include "formats/deflate/bit_reader.h"
#include "formats/deflate/search_work.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/container/search_budget.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kin::formats::deflate {

struct OpenLimits {
  std::uint64_t most_plain = std::uint64_t{1} << 40;
  std::uint64_t most_ratio = 1032;                   // of plain to compressed bytes; deflate cannot do more
  std::uint32_t most_percent = 25;                   // of the compressed bytes that reconstructions may take
  std::size_t piece_bytes = std::size_t{512} << 10;  // of plain; a piece has more, up to the end of a block
  std::size_t block_bytes = std::size_t{16} << 20;   // of plain, and of tokens, that a block may have
  // Whoever asked rebuilds the stream and compares it, and if it is not the same opens it again without this.
  // So pieces are compared without a second search, and a short stream that begins as its hint says, or as
  // one encoder writes all of its first piece, is taken for one that goes on so.
  bool proven_later = false;
  // Of the search for matches, by plain and compressed bytes. Measured: known encoders take up to 80 for a
  // byte, unknown ones up to 450, and 300,000 for the shortest stream.
  std::uint64_t always_steps = 4 << 20;
  std::uint64_t steps_per_byte = 4096;
  // What all streams of a container may take together, besides what each may; see ContainerLimits.
  SearchBudget* search = nullptr;
};

struct Piece {
  Bytes plain;  // may be empty
  Bytes reconstruction;
};

class Opener {
 public:
  // What one stream's encoder was like. The next member of the same archive opens quicker with it.
  class Hint;
  // For a stream that says that it was made by zlib, or gzip, at this level, 1 to 9.
  static std::shared_ptr<const Hint> hint_of_level(int level);

  Opener(BitReader::Read read, OpenLimits limits, std::shared_ptr<const Hint> hint = nullptr);
  ~Opener();

  // Nothing after the stream's end. After an error there is nothing to go on with.
  Result<std::optional<Piece>> next();

  // Once next() has given nothing: the stream's length in bytes, and what was read beyond it.
  std::uint64_t compressed_bytes() const;
  ByteView unread() const;
  // So far; and whether it ended since there were too many.
  const SearchWork& work() const;
  std::shared_ptr<const Hint> hint() const;  // none before the first piece

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin::formats::deflate
