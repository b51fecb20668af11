#include "formats/gunzip_source.h"

#include "lib/base/check.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace kin::formats {
namespace {

constexpr std::size_t kInputBytes = 256 << 10;
constexpr int kGzipOnly = 15 + 16;  // the largest window, and a gzip header and trailer around it

}  // namespace

bool looks_like_gzip(ByteView head) {
  return head.size() >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
}

struct GunzipSource::State {
  explicit State(ByteSource& from) : source(from), input(kInputBytes) {
    KIN_CHECK(::inflateInit2(&stream, kGzipOnly) == Z_OK);
  }
  ~State() { ::inflateEnd(&stream); }

  Result<void> fill() {
    // What is left goes to the front, so that a header is never seen in halves.
    std::copy_n(stream.next_in, stream.avail_in, input.begin());
    KIN_TRY_ASSIGN(const std::size_t got, source.read(std::span(input).subspan(stream.avail_in)));
    at_end = stream.avail_in + got < input.size();
    stream.next_in = input.data();
    stream.avail_in += static_cast<unsigned>(got);
    return {};
  }

  ByteSource& source;
  Bytes input;
  z_stream stream{};
  bool at_end = false;   // of the source
  bool between = false;  // members
  bool done = false;
};

GunzipSource::GunzipSource(ByteSource& source) : state_(std::make_unique<State>(source)) {
  state_->stream.next_in = state_->input.data();
}
GunzipSource::~GunzipSource() = default;

Result<std::size_t> GunzipSource::read(std::span<std::uint8_t> into) {
  State& state = *state_;
  z_stream& stream = state.stream;
  std::size_t done = 0;
  while (done < into.size() && !state.done) {
    if (stream.avail_in < 3 && !state.at_end) KIN_TRY(state.fill());
    if (state.between) {
      if (!looks_like_gzip({stream.next_in, stream.avail_in})) {
        state.done = true;
        break;
      }
      state.between = false;
      KIN_CHECK(::inflateReset(&stream) == Z_OK);
    }
    const std::size_t room = std::min<std::size_t>(into.size() - done, std::numeric_limits<unsigned>::max());
    stream.next_out = into.data() + done;
    stream.avail_out = static_cast<unsigned>(room);
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (result == Z_STREAM_END) {
      state.between = true;
    } else if (result == Z_BUF_ERROR) {  // it needs more, and there is no more
      return Error(ErrorCode::corrupt, "the gzip file is cut off");
    } else if (result != Z_OK) {
      return Error(ErrorCode::corrupt, std::string("the gzip file is damaged: ") +
                                           (stream.msg == nullptr ? "zlib does not say how" : stream.msg));
    }
  }
  return done;
}

}  // namespace kin::formats
