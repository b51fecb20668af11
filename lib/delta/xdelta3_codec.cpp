// VCDIFF, by xdelta3, and zstd over that where it helps: for large objects with a base. Its index holds every
// few bytes of the whole base, where zstd's tables hold the newest part of it; below about a megabyte zstd
// with the base as prefix is smaller and cheaper.
//
// No checksums: an object's id is one.
#include "lib/base/wire.h"
#include "lib/delta/block.h"
#include "lib/delta/codec.h"
#include "lib/delta/vcdiff.h"

#include <algorithm>

namespace kin {

std::unique_ptr<Codec> make_zstd_codec(int level);

namespace {

// Far more than xdelta3 makes of any content; a bound for what a forged payload may unpack to.
std::size_t most_vcdiff_bytes(std::size_t content_size) { return 2 * content_size + 1024; }

// The delta is mostly a small part of the content, so a few levels more cost little.
int zstd_level(int level) { return std::min(level + 6, 19); }

VcdiffRead pieces_of(ByteView bytes, std::size_t piece_bytes) {
  return [bytes, piece_bytes]() mutable -> Result<ByteView> {
    const ByteView piece = bytes.first(std::min(bytes.size(), piece_bytes));
    bytes = bytes.subspan(piece.size());
    return piece;
  };
}

class Xdelta3Codec : public Codec {
 public:
  explicit Xdelta3Codec(int level) : Codec(level), zstd_(make_zstd_codec(zstd_level(level))) {}

  Result<Bytes> encode(ByteView base, ByteView content) override {
    if (std::max(base.size(), content.size()) > kMostBlockBytes)
      return Error(ErrorCode::invalid_argument, "xdelta3: larger than a block can be");
    MemoryVcdiffBaseView base_view(base);
    VcdiffOptions options;
    options.level = level();
    zstd_->set_level(zstd_level(level()));
    options.window_bytes = std::min(content.size(), kVcdiffWindowBytes);
    Bytes vcdiff;
    const std::size_t most = most_vcdiff_bytes(content.size());
    KIN_TRY(encode_vcdiff(
        base_view, pieces_of(content, kVcdiffWindowBytes),
        [&](ByteView bytes) -> Result<void> {
          append(vcdiff, bytes);
          if (vcdiff.size() > most)
            return Error(ErrorCode::io, "xdelta3: the delta is larger than the content");
          return {};
        },
        options));
    KIN_TRY_ASSIGN(const Bytes packed, zstd_->encode({}, vcdiff));
    WireWriter out;
    const bool pack = packed.size() + 2 < vcdiff.size();  // 2: about what its size takes
    out.varint(pack ? vcdiff.size() : 0);
    out.raw(pack ? packed : vcdiff);
    return out.take();
  }

  Result<void> decode_into(ByteView base, ByteView payload, std::span<std::uint8_t> content) override {
    WireReader in(payload);
    const std::size_t size = content.size();
    const std::uint64_t vcdiff_size = in.varint_up_to(most_vcdiff_bytes(size));
    if (in.failed()) return Error(ErrorCode::corrupt, "xdelta3: the payload's size is damaged");
    ByteView vcdiff = payload.subspan(in.position());
    Bytes unpacked;
    if (vcdiff_size > 0) {
      KIN_TRY_ASSIGN(unpacked, zstd_->decode({}, vcdiff, static_cast<std::size_t>(vcdiff_size)));
      vcdiff = unpacked;
    }
    MemoryVcdiffBaseView base_view(base);
    std::size_t filled = 0;
    VcdiffLimits limits;
    limits.target_bytes = size;
    limits.strict = true;
    const auto target = decode_vcdiff(
        base_view, pieces_of(vcdiff, vcdiff.size()),
        [&](ByteView bytes) -> Result<void> {
          if (bytes.size() > content.size() - filled)
            return Error(ErrorCode::corrupt, "xdelta3: the payload decodes to the wrong length");
          std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(filled));
          filled += bytes.size();
          return {};
        },
        limits);
    // Whatever VCDIFF calls it: kin did not write this, or not for this base.
    if (!target)
      return Error(target.error().code() == ErrorCode::io ? ErrorCode::io : ErrorCode::corrupt,
                   target.error().message());
    if (filled != size) return Error(ErrorCode::corrupt, "xdelta3: the payload decodes to the wrong length");
    return {};
  }

 private:
  const std::unique_ptr<Codec> zstd_;
};

}  // namespace

std::unique_ptr<Codec> make_xdelta3_codec(int level) { return std::make_unique<Xdelta3Codec>(level); }

}  // namespace kin
