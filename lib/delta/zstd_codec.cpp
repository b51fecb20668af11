// Zstandard, with the base as a raw-content prefix (ZSTD_CCtx_refPrefix): the window reaches back into the
// base, so a copy from it costs what a copy from the content itself costs. loadDictionary would do the same
// at several times the set-up cost per block.
#include "lib/base/check.h"
#include "lib/delta/codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <string>

namespace kin {
namespace {

// A window that covers base and content; the decoder is held to the same bound, so that a forged frame cannot
// ask for more.
constexpr int kMostWindowLog = 27;

int window_log(std::size_t bytes) {
  const int log = std::bit_width(bytes);
  return std::min(std::max(log, 10), kMostWindowLog);
}

// From which size of base and content on zstd is to look for long matches far away (by an index of its own,
// of one position in 128). Its ordinary tables grow with the level, not with the base: of a base that is
// larger than they hold, zstd forgets all but the end. Measured at level 3, base and content of 4 MiB each,
// three bytes inserted: 1.4 MB without, 438 bytes with. Where the tables suffice it only costs: about a
// millisecond per MiB, and up to a tenth of the size, since a long match is taken even where several shorter
// ones would be cheaper.
std::size_t least_for_long_matches(int level) {
  if (level < 3) return 256 << 10;
  if (level < 9) return 2 << 20;
  return 16 << 20;
}

class ZstdCodec : public Codec {
 public:
  explicit ZstdCodec(int level)
      : Codec(level), compressor_(ZSTD_createCCtx()), decompressor_(ZSTD_createDCtx()) {
    KIN_CHECK(compressor_ && decompressor_);
  }

  Result<Bytes> encode(ByteView base, ByteView content) override {
    ZSTD_CCtx* const context = compressor_.get();
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level());
    // The block's header has the size, and the seal is the checksum.
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log(base.size() + content.size()));
    if (!base.empty()) {
      if (base.size() + content.size() >= least_for_long_matches(level()))
        ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
      ZSTD_CCtx_refPrefix(context, base.data(), base.size());
    }
    // A payload waits in memory for its turn to be stored: it should take no more than it needs.
    const auto scratch = scratch_of(scratch_, ZSTD_compressBound(content.size()));
    const std::size_t size =
        ZSTD_compress2(context, scratch.data(), scratch.size(), content.data(), content.size());
    if (ZSTD_isError(size)) return Error(ErrorCode::io, std::string("zstd: ") + ZSTD_getErrorName(size));
    return Bytes(scratch.begin(), scratch.begin() + static_cast<std::ptrdiff_t>(size));
  }

  Result<void> decode_into(ByteView base, ByteView payload, std::span<std::uint8_t> content) override {
    ZSTD_DCtx* const context = decompressor_.get();
    ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMostWindowLog);
    if (!base.empty()) ZSTD_DCtx_refPrefix(context, base.data(), base.size());
    const std::size_t got =
        ZSTD_decompressDCtx(context, content.data(), content.size(), payload.data(), payload.size());
    if (ZSTD_isError(got)) return Error(ErrorCode::corrupt, std::string("zstd: ") + ZSTD_getErrorName(got));
    if (got != content.size())
      return Error(ErrorCode::corrupt, "zstd: the payload decodes to the wrong length");
    return {};
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  Bytes scratch_;
  std::unique_ptr<ZSTD_CCtx, Free> compressor_;
  std::unique_ptr<ZSTD_DCtx, Free> decompressor_;
};

}  // namespace

std::unique_ptr<Codec> make_zstd_codec(int level) { return std::make_unique<ZstdCodec>(level); }

}  // namespace kin
