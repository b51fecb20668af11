#include "formats/lines_until.h"

namespace kin::formats {

Result<std::size_t> LinesUntil::read(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (known_ == 0) {
      if (ended_) break;
      KIN_TRY_ASSIGN(const ByteView text, in_.peek(kLookBytes));
      const bool is_all = text.size() < kLookBytes;
      const LinesFound found = find_(text, at_line_start_, is_all);
      known_ = found.size;
      ended_ = found.ends || is_all;
      continue;
    }
    const std::size_t size = std::min(into.size() - done, known_);
    KIN_TRY_ASSIGN(const std::size_t got, in_.read(into.subspan(done, size)));
    if (got < size) return Error(ErrorCode::io, "bytes that were there are gone");
    at_line_start_ = into[done + size - 1] == '\n';
    done += size;
    known_ -= size;
  }
  return done;
}

}  // namespace kin::formats
