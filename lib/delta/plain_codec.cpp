// The content itself: for what does not compress.
#include "lib/delta/codec.h"

namespace kin {
namespace {

class PlainCodec : public Codec {
 public:
  Result<Bytes> encode(ByteView, ByteView content) override { return Bytes(content.begin(), content.end()); }

  Result<Bytes> decode(ByteView, ByteView payload, std::size_t size) override {
    if (payload.size() != size) return Error(ErrorCode::corrupt, "plain payload has the wrong length");
    return Bytes(payload.begin(), payload.end());
  }
};

}  // namespace

std::unique_ptr<Codec> make_plain_codec(int) { return std::make_unique<PlainCodec>(); }

}  // namespace kin
