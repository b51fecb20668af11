#include "lib/delta/vcdiff.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

// Last, since it defines macros with names such as Q.
extern "C" {
#include <xdelta3.h>
}

namespace kin {
namespace {

// How far the encoder looks around in the base, as the xdelta3 program does: its index of these bytes takes
// 32 MiB at level 3, 128 MiB at level 9.
constexpr std::uint64_t kMostReachBytes = 64 << 20;

// More than any section of a window of 16 MiB takes. A delta can claim sections of 4 GiB in a few bytes; from
// 2 GiB on the library would even allocate less than it then fills.
constexpr std::size_t kMostDecoderAllocation = 32 << 20;

// A window of the base below this size, and a target window of 16 MiB at most, keep all the library's sums
// within 32 bits, where it does not look for overflow.
constexpr std::uint64_t kMostCopyWindow = std::uint64_t{1} << 31;

enum HeaderIndicator : std::uint8_t { secondary = 1, code_table = 2, application_header = 4 };
enum WindowIndicator : std::uint8_t { window_checksum = 4 };  // xdelta3's VCD_ADLER32
constexpr std::uint8_t kLzmaSections = 2;
constexpr std::array<std::uint8_t, 5> kPlainHeader{0xd6, 0xc3, 0xc4, 0, 0};

// One encoding or decoding, and what the library calls back.
class Stream {
 public:
  // Zero: unlimited.
  Stream(VcdiffBase& base, std::size_t most_allocation) : base_(base), most_allocation_(most_allocation) {}
  ~Stream() { xd3_free_stream(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Result<void> open(int flags, std::size_t window_bytes) {
    xd3_config config{};
    config.flags = flags;
    config.winsize = static_cast<usize_t>(std::max<std::size_t>(window_bytes, 1 << 14));
    config.sprevsz = static_cast<usize_t>(std::min<std::size_t>(std::bit_ceil(config.winsize), 1 << 20));
    // iopt_size stays 0: an instruction buffer that ends makes the library guess which part of the base it
    // will need.
    config.alloc = allocate;
    config.freef = release;
    config.getblk = get_block;
    config.opaque = this;
    if (xd3_config_stream(&stream_, &config) != 0) return failure("cannot start");
    if (base_.size() == 0) return {};
    source_.blksize = static_cast<usize_t>(base_.block_size());
    source_.max_winsize = std::min(base_.size(), kMostReachBytes);
    if (xd3_set_source_and_size(&stream_, &source_, base_.size()) != 0) return failure("cannot use the base");
    return {};
  }

  xd3_stream* get() { return &stream_; }
  xd3_stream* operator->() { return &stream_; }

  // What a call ended with that is neither progress nor a question.
  Error failure(std::string_view doing) {
    return Error(ErrorCode::io, fmt::format("xdelta3: {}: {}", doing, reason()));
  }
  std::string_view reason() const { return stream_.msg ? stream_.msg : "no reason given"; }
  std::optional<Error> base_error;  // from reading the base
  bool allocation_refused = false;

 private:
  static void* allocate(void* opaque, std::size_t count, usize_t size) {
    auto& stream = *static_cast<Stream*>(opaque);
    if (stream.most_allocation_ > 0 && size > 0 && count > stream.most_allocation_ / size) {
      stream.allocation_refused = true;
      return nullptr;
    }
    return std::calloc(count, size);  // zeros, so that what we write cannot depend on what was in memory
  }
  static void release(void*, void* memory) { std::free(memory); }

  static int get_block(xd3_stream* stream, xd3_source* source, xoff_t number) {
    static constexpr std::uint8_t kNothing = 0;
    auto& self = *static_cast<Stream*>(stream->opaque);
    auto block = self.base_.block(number);
    if (!block) {
      self.base_error = std::move(block).error();
      return EIO;
    }
    source->curblkno = number;
    source->curblk = block->empty() ? &kNothing : block->data();
    source->onblk = static_cast<usize_t>(block->size());
    return 0;
  }

  VcdiffBase& base_;
  const std::size_t most_allocation_;
  xd3_stream stream_{};
  xd3_source source_{};
};

// The library builds its code table when it is first used, and two threads would build it at once: one of
// them with half a table. So it is used here, once, before anything else is.
void build_code_table() {
  [[maybe_unused]] static const bool built = [] {
    MemoryVcdiffBaseView none{ByteView()};
    Stream stream(none, 0);
    if (!stream.open(0, 0)) return false;
    xd3_avail_input(stream.get(), kPlainHeader.data(), static_cast<usize_t>(kPlainHeader.size()));
    return xd3_decode_input(stream.get()) == XD3_INPUT;
  }();
}

Result<void> check_header(ByteView start, bool strict) {
  if (strict) {
    if (start.size() < kPlainHeader.size() || !equal(start.first(kPlainHeader.size()), kPlainHeader))
      return Error(ErrorCode::corrupt, "the VCDIFF header is damaged");
    return {};
  }
  if (start.size() < 3 || !equal(start.first(3), ByteView(kPlainHeader).first(3)))
    return Error(ErrorCode::unsupported, "it is no VCDIFF delta");
  if (start.size() < 6) return Error(ErrorCode::corrupt, "the delta is cut short");
  if (start[3] != 0)
    return Error(ErrorCode::unsupported, "it is of a version of VCDIFF that kin does not read");
  if ((start[4] & ~(secondary | code_table | application_header)) != 0)
    return Error(ErrorCode::corrupt, "the delta is damaged (its header says what no header can)");
  if ((start[4] & code_table) != 0)
    return Error(ErrorCode::unsupported, "it has a code table of its own, which kin does not read");
  if ((start[4] & secondary) != 0 && start[5] != kLzmaSections)
    return Error(
        ErrorCode::unsupported,
        "its sections are compressed in a way that kin does not read; xdelta3 recode -S lzma mends that");
  return {};
}

// Called before the library allocates anything for a window.
Result<void> check_window(Stream& stream, const VcdiffBase& base, std::uint64_t left,
                          const VcdiffLimits& limits) {
  const std::uint64_t copy_end = stream->dec_cpyoff + stream->dec_cpylen;  // the library looked for overflow
  if (stream->dec_cpylen > kMostCopyWindow || copy_end > std::uint64_t{1} << 62)
    return Error(ErrorCode::corrupt, "the delta is damaged (it copies from where no file can be)");
  if (stream->dec_tgtlen > left)
    return Error(ErrorCode::corrupt, "the delta gives more bytes than it should");
  if (!limits.strict) return {};
  const std::uint64_t sections =
      std::uint64_t{stream->data_sect.size} + stream->inst_sect.size + stream->addr_sect.size;
  if (sections > stream->avail_in) return Error(ErrorCode::corrupt, "the delta is cut short");
  if (copy_end > base.size()) return Error(ErrorCode::wrong_base, "the base is too short");
  // Only the one window of an empty target may be empty. Otherwise a small delta could be of endless windows.
  if (stream->dec_tgtlen == 0 && (limits.target_bytes > 0 || stream->current_window > 0))
    return Error(ErrorCode::corrupt, "the delta has an empty window");
  return {};
}

Error decode_error(Stream& stream, int code) {
  if (stream.base_error) return *std::move(stream.base_error);
  if (stream.allocation_refused)
    return Error(ErrorCode::corrupt, "the delta is damaged (it asks for more memory than any delta needs)");
  if (code == ENOMEM) return Error(ErrorCode::io, "xdelta3: out of memory");
  if (code == XD3_UNIMPLEMENTED)
    return Error(ErrorCode::unsupported, "it copies from earlier windows, which kin does not read");
  // The library has one code for these and for damage.
  const std::string_view reason = stream.reason();
  if (reason == "hard window size exceeded")
    return Error(ErrorCode::unsupported, "it has windows of more than 16 MiB, which kin does not read");
  if (reason == "source file too short" || reason == "source input required")
    return Error(ErrorCode::wrong_base,
                 "the base is too short: it is not the one that the delta was made from");
  if (reason == "target window checksum mismatch")
    return Error(
        ErrorCode::wrong_base,
        "the result has the wrong checksum: the base is not the one that the delta was made from, or the "
        "delta is damaged");
  return Error(ErrorCode::corrupt, fmt::format("the delta is damaged (xdelta3: {})", reason));
}

}  // namespace

std::size_t MemoryVcdiffBaseView::block_size() const {
  return std::bit_ceil(std::max<std::size_t>(bytes_.size(), 1 << 14));
}

Result<void> encode_vcdiff(VcdiffBase& base, const VcdiffRead& target, const VcdiffWrite& write,
                           const VcdiffOptions& options) {
  build_code_table();
  Stream stream(base, 0);
  const int level = std::clamp(options.level, 1, 9) << XD3_COMPLEVEL_SHIFT;
  KIN_TRY(stream.open(level | XD3_FLUSH | (options.checksums ? XD3_ADLER32 : 0), options.window_bytes));
  for (bool first = true;; first = false) {
    KIN_TRY_ASSIGN(const ByteView piece, target());
    if (piece.empty() && !first) break;
    // A null pointer would mean that there is no input yet.
    xd3_avail_input(stream.get(), piece.empty() ? kPlainHeader.data() : piece.data(),
                    static_cast<usize_t>(piece.size()));
    for (int state = 0; state != XD3_INPUT;) {
      state = xd3_encode_input(stream.get());
      if (state == XD3_OUTPUT) {
        KIN_TRY(write({stream->next_out, stream->avail_out}));
        xd3_consume_output(stream.get());
      } else if (state != XD3_INPUT && state != XD3_WINSTART && state != XD3_WINFINISH) {
        if (stream.base_error) return *std::move(stream.base_error);
        return stream.failure("cannot encode");
      }
    }
    if (piece.empty()) break;
  }
  if (xd3_close_stream(stream.get()) != 0) return stream.failure("cannot finish");
  return {};
}

Result<VcdiffTarget> decode_vcdiff(VcdiffBase& base, const VcdiffRead& delta, const VcdiffWrite& write,
                                   const VcdiffLimits& limits) {
  build_code_table();
  Stream stream(base, kMostDecoderAllocation);
  KIN_TRY(stream.open(0, 0));
  KIN_TRY_ASSIGN(const ByteView start, delta());
  KIN_TRY(check_header(start, limits.strict));
  xd3_avail_input(stream.get(), start.data(), static_cast<usize_t>(start.size()));
  VcdiffTarget out;
  bool any_window = false;
  for (;;) {
    switch (const int state = xd3_decode_input(stream.get())) {
      case XD3_INPUT: {
        KIN_TRY_ASSIGN(const ByteView piece, delta());
        if (piece.empty()) {
          if (!any_window || xd3_close_stream(stream.get()) != 0)
            return Error(ErrorCode::corrupt, "the delta is cut short");
          return out;
        }
        xd3_avail_input(stream.get(), piece.data(), static_cast<usize_t>(piece.size()));
        break;
      }
      case XD3_GOTHEADER:
      case XD3_WINSTART:
        any_window = true;
        KIN_TRY(check_window(stream, base, limits.target_bytes - out.bytes, limits));
        if ((stream->dec_win_ind & window_checksum) == 0) out.checked = false;
        break;
      case XD3_OUTPUT:
        KIN_TRY(write({stream->next_out, stream->avail_out}));
        out.bytes += stream->avail_out;
        xd3_consume_output(stream.get());
        break;
      case XD3_WINFINISH:
        break;
      default:
        return decode_error(stream, state);
    }
  }
}

}  // namespace kin
