// LinesUntil: another source up to a certain line, which whoever asks for it knows. The source must outlive
// it. One thread at a time.
#pragma once

#include "lib/container/peek_source.h"

#include <functional>

namespace kin::formats {

// How much at the front of a text comes before that line; and whether the line is there, or the text's end is
// to be looked at again with more behind it.
struct LinesFound {
  std::size_t size = 0;
  bool ends = false;
};

class LinesUntil : public ByteSource {
 public:
  static constexpr std::size_t kLookBytes = 64 << 10;

  // Gets kLookBytes, or all that are left. Unless they are all, or the line is there, it must not answer 0.
  using Find = std::function<LinesFound(ByteView text, bool at_line_start, bool is_all)>;

  LinesUntil(PeekSource& in, Find find, bool at_line_start)
      : in_(in), find_(std::move(find)), at_line_start_(at_line_start) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override;

  bool at_line_start() const { return at_line_start_; }  // behind what was read

 private:
  PeekSource& in_;
  const Find find_;
  bool at_line_start_;
  std::size_t known_ = 0;  // to come before the line
  bool ended_ = false;     // behind those
};

}  // namespace kin::formats
