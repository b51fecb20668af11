#include "lib/sync/block_delta.h"

#include "lib/sync/content_files.h"
#include "lib/sync/item.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

namespace kin::testing {
namespace {

using sync::BlockDifference;
using sync::BlockMatcher;
using sync::BlockPatcher;
using sync::BlockSignature;
using sync::SignatureBuilder;

class Source : public ByteSource {
 public:
  explicit Source(ByteView bytes) : bytes_(bytes) {}
  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    const std::size_t some = std::min(into.size(), bytes_.size());
    std::copy_n(bytes_.begin(), some, into.begin());
    bytes_ = bytes_.subspan(some);
    return some;
  }

 private:
  ByteView bytes_;
};

BlockSignature signature_of(ByteView content, std::size_t piece_bytes = 1 << 20) {
  SignatureBuilder builder(content.size());
  for (ByteView rest = content; !rest.empty(); rest = rest.subspan(std::min(piece_bytes, rest.size())))
    builder.add(rest.first(std::min(piece_bytes, rest.size())));
  const auto out = builder.finish(sync::object_id(content));
  REQUIRE(out);
  return *out;
}

struct Sent {
  Bytes content;
  std::size_t new_bytes = 0;
  std::size_t pieces = 0;
};

// As a sender and a receiver do, `ahead` bytes at a time.
Sent send(ByteView former, ByteView content, std::size_t ahead, std::size_t most_new_bytes) {
  BlockMatcher matcher(signature_of(former));
  BlockPatcher patcher(std::make_unique<Source>(former));
  Sent out;
  for (std::size_t at = 0; at < content.size();) {
    const ByteView some = content.subspan(at, std::min(ahead, content.size() - at));
    const BlockDifference difference = matcher.next(some, at + some.size() == content.size(), most_new_bytes);
    REQUIRE(difference.covers > 0);
    append(out.content, value_of(patcher.play(difference.steps, difference.covers)));
    out.new_bytes += difference.new_bytes;
    ++out.pieces;
    at += difference.covers;
  }
  return out;
}

Bytes changed(Bytes content, std::size_t at, std::size_t removed, ByteView inserted) {
  const auto begin = content.begin() + static_cast<std::ptrdiff_t>(at);
  content.erase(begin, begin + static_cast<std::ptrdiff_t>(removed));
  content.insert(content.begin() + static_cast<std::ptrdiff_t>(at), inserted.begin(), inserted.end());
  return content;
}

TEST_CASE("a signature is the same, however the content comes", "[sync]") {
  const Bytes content = random_bytes(1, 100'000);
  const BlockSignature whole = signature_of(content);
  for (const std::size_t piece : {1U, 511U, 512U, 513U, 70'000U})
    CHECK(signature_of(content, piece) == whole);
  CHECK(sync::decode_signatures(sync::encode_signatures({whole, whole})) == std::vector{whole, whole});
}

TEST_CASE("a signature of another size than was said, or of too little, is none", "[sync]") {
  const Bytes content = random_bytes(1, 5000);
  for (const std::size_t said : {4999U, 5001U}) {
    SignatureBuilder builder(said);
    builder.add(content);
    CHECK_FALSE(builder.finish({}));
  }
  SignatureBuilder small(100);
  small.add(ByteView(content).first(100));
  CHECK_FALSE(small.finish({}));
}

TEST_CASE("damaged signatures are none", "[sync]") {
  const Bytes good = sync::encode_signatures({signature_of(random_bytes(1, 20'000))});
  for (std::size_t size = 1; size < good.size(); ++size)
    CHECK(sync::decode_signatures(ByteView(good).first(size)).empty());
  Bytes huge(32);
  huge.resize(41, 0xff);
  CHECK(sync::decode_signatures(huge).empty());
}

TEST_CASE("a changed content is sent as the difference from the former one", "[sync]") {
  for (const std::size_t size : {std::size_t{30'000}, std::size_t{3'000'000}}) {
    const Bytes former = random_bytes(2, size);
    const std::size_t block = sync::block_bytes(size);
    const Bytes some = random_bytes(3, 100);
    const std::vector<std::pair<Bytes, std::size_t>> cases{
        {former, block},  // all but what is behind the last whole block
        {changed(former, size / 2, 1, ByteView(some).first(1)), 2 * block},
        {changed(former, size / 2, 0, some), 2 * block + 100},
        {changed(former, size / 3, 1000, {}), 2 * block + 1000},
        {changed(former, 0, 0, some), block + 100},
        {changed(former, size, 0, some), block + 100},
    };
    for (std::size_t i = 0; i < cases.size(); ++i)
      for (const std::size_t ahead : {std::size_t{1} << 22, 5 * block + 7}) {
        INFO(size << " bytes, case " << i << ", " << ahead << " ahead");
        const Sent sent = send(former, cases[i].first, ahead, 1 << 20);
        CHECK(sent.content == cases[i].first);
        CHECK(sent.new_bytes <= cases[i].second);
      }
  }
}

TEST_CASE("a piece of a difference has no more new bytes than it may", "[sync]") {
  const Bytes former = random_bytes(4, 400'000);
  Bytes content = random_bytes(5, 400'000);
  append(content, former);
  const Sent sent = send(former, content, 1 << 20, 30'000);
  CHECK(sent.content == content);
  CHECK(sent.pieces >= 13);
  CHECK(sent.new_bytes < 402'000);
}

TEST_CASE("equal blocks are copied one after the other", "[sync]") {
  const Bytes former(200'000);
  Bytes content(180'000);
  append(content, random_bytes(6, 1000));
  append(content, Bytes(20'000));
  const Sent sent = send(former, content, 1 << 20, 1 << 20);
  CHECK(sent.content == content);
  CHECK(sent.new_bytes < 4000);
}

TEST_CASE("steps that say anything at all are an error at worst", "[sync]") {
  const Bytes former = random_bytes(7, 20'000);
  const Bytes content = changed(former, 5000, 10, random_bytes(8, 300));
  BlockDifference good = BlockMatcher(signature_of(former)).next(content, true, 1 << 20);
  REQUIRE(good.covers == content.size());
  for (std::size_t at = 0; at < good.steps.size(); ++at)
    for (const int flip : {1, 0x80, 0xff}) {
      Bytes steps = good.steps;
      steps[at] ^= static_cast<std::uint8_t>(flip);
      const auto played = BlockPatcher(std::make_unique<Source>(former)).play(steps, good.covers);
      if (played) CHECK(played->size() == good.covers);
    }
  for (std::size_t size = 0; size < good.steps.size(); ++size)
    CHECK_FALSE(
        BlockPatcher(std::make_unique<Source>(former)).play(ByteView(good.steps).first(size), good.covers));
  for (const std::size_t covers : {good.covers - 1, good.covers + 1})
    CHECK_FALSE(BlockPatcher(std::make_unique<Source>(former)).play(good.steps, covers));
  const auto shorter =
      BlockPatcher(std::make_unique<Source>(ByteView(former).first(10'000))).play(good.steps, good.covers);
  REQUIRE_FALSE(shorter);
  CHECK(shorter.error().code() == ErrorCode::wrong_base);
}

}  // namespace
}  // namespace kin::testing
