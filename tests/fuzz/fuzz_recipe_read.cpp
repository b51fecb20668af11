// Recipes from hostile bytes: an error or bytes of the right size, in bounded time. Every object is the input
// itself, so recipes lead to themselves too.
#include "formats/formats.h"
#include "lib/base/check.h"
#include "lib/container/content_source.h"

#include <cstdint>

namespace {

class Same : public kin::ObjectReader {
 public:
  explicit Same(kin::Bytes bytes) : bytes_(std::make_shared<const kin::Bytes>(std::move(bytes))) {}
  kin::Result<std::shared_ptr<const kin::Bytes>> load(const kin::ObjectId&) override { return bytes_; }
  kin::Result<bool> contains(const kin::ObjectId&) override { return true; }

 private:
  const std::shared_ptr<const kin::Bytes> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Same reader(kin::Bytes(data, data + size));
  for (const std::uint64_t claimed : {std::uint64_t{4}, std::uint64_t{4096}}) {
    const kin::Extent extent{kin::Extent::Kind::container, claimed, {}};
    kin::ContentSource source(reader, kin::formats::all(), {extent});
    kin::Bytes buffer(claimed + 1);
    const auto got = source.read(buffer);
    KIN_CHECK(!got || *got == claimed);
    (void)kin::for_each_object(reader, {extent},
                               [](const kin::Extent&) -> kin::Result<bool> { return true; });
  }
  return 0;
}
