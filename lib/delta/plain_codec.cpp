// The content itself: for what does not compress.
#include "lib/delta/codec.h"

#include <algorithm>

namespace kin {
namespace {

class PlainCodec : public Codec {
 public:
  explicit PlainCodec(int level) : Codec(level) {}

  Result<Bytes> encode(ByteView, ByteView content) override { return Bytes(content.begin(), content.end()); }

  Result<void> decode_into(ByteView, ByteView payload, std::span<std::uint8_t> content) override {
    if (payload.size() != content.size())
      return Error(ErrorCode::corrupt, "plain payload has the wrong length");
    std::copy(payload.begin(), payload.end(), content.begin());
    return {};
  }
};

}  // namespace

std::unique_ptr<Codec> make_plain_codec(int level) { return std::make_unique<PlainCodec>(level); }

}  // namespace kin
