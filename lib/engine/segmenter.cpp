#include "lib/engine/segmenter.h"

#include <algorithm>

namespace kin {
namespace {

// Of content whose size is not known: most is small, and 4 MiB of fresh memory take longer than to read it.
constexpr std::size_t kFirstReadBytes = 64 << 10;
constexpr std::size_t kGrowth = 8;

}  // namespace

Result<std::uint64_t> Segmenter::run(const Read& read, std::uint64_t limit, const Emit& emit) {
  std::uint64_t total = 0;
  std::size_t have = 0;  // bytes in the buffer
  bool first = true, ended = false;
  // Left by a large file, and most are small.
  if (limit <= Scanner::kWholeBytes && buffer_.size() > Scanner::kWholeBytes) Bytes().swap(buffer_);
  for (;;) {
    const std::uint64_t left = limit - total - have;
    const std::size_t want =
        static_cast<std::size_t>(std::min<std::uint64_t>(Scanner::kMostBytes - have, left));
    const std::size_t full = have + want;
    while (!ended && have < full) {
      const std::size_t room =
          left == want ? full : std::min(full, std::max({buffer_.size(), kGrowth * have, kFirstReadBytes}));
      if (buffer_.size() < room) buffer_.resize(room);
      KIN_TRY_ASSIGN(const std::size_t got, read(std::span(buffer_).subspan(have, room - have)));
      ended = got < room - have;
      have += got;
    }
    if (have == 0) return total;
    const ByteView content = ByteView(buffer_).first(have);
    const bool all = ended || left == want;
    const Scanner& scanner = store_.scanner();
    Scanner::Segment segment = first && all && have <= Scanner::kWholeBytes
                                   ? Scanner::Segment{have, scanner.sketch(content)}
                                   : scanner.segment(content);
    const std::size_t cut = segment.size;
    NewObject object;
    object.bytes.assign(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(cut));
    object.id = store_.id_of(object.bytes);
    object.sketch = std::move(segment.sketch);
    if (!emit(std::move(object))) return interrupted();
    total += cut;
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(cut),
              buffer_.begin() + static_cast<std::ptrdiff_t>(have), buffer_.begin());
    have -= cut;
    first = false;
  }
}

}  // namespace kin
