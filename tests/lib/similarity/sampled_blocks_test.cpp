#include "lib/similarity/sampled_blocks.h"

#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"

#include <set>

namespace kin {
namespace {

using testing::value_of;

double similarity(const char* name, ByteView query, ByteView other) {
  const auto detector = find_detector(name)->make();
  const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
  MemoryContent a(query), b(other);
  testing::require_ok(index->add(1, value_of(detector->print(b, ""))));
  const auto found = value_of(index->find(value_of(detector->print(a, "")), {}));
  return found.empty() ? 0 : found.front().similarity;
}

Bytes inserted(const Bytes& content, std::size_t at, std::size_t size) {
  Bytes out(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(at));
  append(out, testing::random_bytes(99, size));
  append(out, ByteView(content).subspan(at));
  return out;
}

}  // namespace

TEST_CASE("what is appended is nothing to pas and epas, and all to tsa", "[sampled_blocks]") {
  const Bytes content = testing::random_bytes(1, 1'000'000);
  const Bytes longer = inserted(content, content.size(), 5'000);
  CHECK(similarity("tsa", longer, content) < 0.1);
  CHECK(similarity("pas", longer, content) > 0.8);
  CHECK(similarity("epas", longer, content) == 1);
}

TEST_CASE("what is inserted at the front or in the middle is nothing to epas alone", "[sampled_blocks]") {
  const Bytes content = testing::random_bytes(2, 1'000'000);
  for (const std::size_t at : {std::size_t{0}, std::size_t{500'000}}) {
    const Bytes longer = inserted(content, at, 5'000);
    CHECK(similarity("tsa", longer, content) < 0.2);
    CHECK(similarity("pas", longer, content) < 0.5);
    CHECK(similarity("epas", longer, content) > 0.8);
  }
}

TEST_CASE("the places of the paper's example are those of tsa", "[sampled_blocks]") {
  // 6 blocks of 1 KB in 56 KB lie 10 KB apart, in 61 KB 11 KB.
  CHECK(sampling_distance(56 * 1024, 6) == 10 * 1024);
  CHECK(sampling_distance(61 * 1024, 6) == 11 * 1024);
  CHECK(sampling_distance(1000, 6) == 0);
}

TEST_CASE("no more is read of a large file than of a small one", "[sampled_blocks]") {
  struct Huge : ContentReader {
    std::uint64_t size() const override { return std::uint64_t{1} << 50; }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) override {
      read += into.size();
      last = std::max(last, offset + into.size());
      std::fill(into.begin(), into.end(), static_cast<std::uint8_t>(offset >> 40));
      return into.size();
    }
    std::uint64_t read = 0, last = 0;
  };
  for (const char* name : {"tsa", "pas", "epas"}) {
    Huge huge;
    value_of(find_detector(name)->make()->print(huge, ""));
    CHECK(huge.read == kSampledBlocks * kSampledBlockBytes);
    CHECK(huge.last <= huge.size());
    CHECK(huge.last > huge.size() - (1 << 20));
  }
}

}  // namespace kin
