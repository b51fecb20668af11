// What a source does that makes its bytes piece by piece: hand out what is ready, and make more.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <algorithm>
#include <span>

namespace kin::formats {

// A ByteSource's read(), from `ready` on from `at`. `next_piece` puts more there, or makes `ended` true; it
// may do neither, and is asked again.
template <class Ended, class NextPiece>
Result<std::size_t> read_pieces(std::span<std::uint8_t> into, const Bytes& ready, std::size_t& at,
                                const Ended& ended, const NextPiece& next_piece) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (at == ready.size()) {
      if (ended()) break;
      KIN_TRY(next_piece());
      continue;
    }
    const std::size_t size = std::min(into.size() - done, ready.size() - at);
    std::copy_n(ready.begin() + static_cast<std::ptrdiff_t>(at), size,
                into.begin() + static_cast<std::ptrdiff_t>(done));
    at += size;
    done += size;
  }
  return done;
}

}  // namespace kin::formats
