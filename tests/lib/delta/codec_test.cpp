// What every codec must do: the loops run over all_codecs(), so that a new one is tested by being in the
// table.
#include "lib/delta/codec.h"

#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace kin {
namespace {

using testing::code_of;
using testing::compressible_bytes;
using testing::random_bytes;
using testing::text_like;
using testing::value_of;

constexpr int kLevel = 3;

// The content with a few bytes changed, taken out and put in: what a codec with a base is for.
Bytes edited(Bytes content, std::uint64_t seed) {
  testing::Random random(seed);
  for (int i = 0; i < 5 && !content.empty(); ++i) {
    const auto at = content.begin() + static_cast<std::ptrdiff_t>(random.below(content.size()));
    if (i % 3 == 0) *at ^= 0x55;
    if (i % 3 == 1) content.insert(at, {1, 2, 3, 4, 5});
    if (i % 3 == 2) content.erase(at);
  }
  return content;
}

std::vector<Bytes> make_contents() {
  std::vector<Bytes> out;
  for (const std::size_t size :
       {0, 1, 2, 3, 8, 31, 127, 128, 129, 1000, 4096, 65535, 65536, 65537, 131073, 300'000, 1 << 20}) {
    out.push_back(random_bytes(size, size));
    out.push_back(text_like(size, size));
    out.push_back(compressible_bytes(size, size));
  }
  out.push_back(Bytes(2 << 20));
  out.push_back(text_like(1, 5 << 20));
  return out;
}

const std::vector<Bytes>& contents() {
  static const std::vector<Bytes> kContents = make_contents();
  return kContents;
}

// A null base is none; whether the codec was used before must not matter.
bool round_trips(Codec& codec, ByteView base, ByteView content) {
  const auto payload = codec.encode(base, content);
  if (!payload) return false;
  const auto decoded = codec.decode(base, *payload, content.size());
  return decoded && equal(*decoded, content);
}

}  // namespace

TEST_CASE("every codec gives back any content", "[codec]") {
  for (const CodecEntry& entry : all_codecs())
    for (const int level : {1, kLevel, 9}) {
      const std::unique_ptr<Codec> codec = entry.make(level);
      for (const Bytes& content : contents()) {
        if (level != kLevel && content.size() > 200'000) continue;
        INFO(entry.name << " level " << level << " size " << content.size());
        CHECK(round_trips(*codec, {}, content));
      }
    }
}

TEST_CASE("every codec gives back any content against any base", "[codec]") {
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    for (const Bytes& content : contents()) {
      const Bytes larger = [&] {
        Bytes out = random_bytes(7, 100'000);
        append(out, content);
        return out;
      }();
      for (const Bytes& base :
           {Bytes{0x42}, content, edited(content, 8), random_bytes(9, 5000), text_like(10, 50'000), larger}) {
        INFO(entry.name << " base " << base.size() << " content " << content.size());
        CHECK(round_trips(*codec, base, content));
      }
    }
  }
}

TEST_CASE("every codec gives back content far away from its like in the base", "[codec]") {
  const Bytes base = random_bytes(11, 20 << 20);
  const Bytes content(base.begin() + 1000, base.begin() + (2 << 20));
  for (const CodecEntry& entry : all_codecs()) {
    INFO(entry.name);
    CHECK(round_trips(*entry.make(kLevel), base, content));
  }
}

TEST_CASE("a payload decodes with another instance of its codec", "[codec]") {
  const Bytes base = text_like(12, 20'000), content = edited(base, 13);
  for (const CodecEntry& entry : all_codecs()) {
    const Bytes payload = value_of(entry.make(kLevel)->encode(base, content));
    INFO(entry.name);
    CHECK(equal(value_of(entry.make(0)->decode(base, payload, content.size())), content));
  }
}

TEST_CASE("a codec forgets the base of the call before", "[codec]") {
  const Bytes base = random_bytes(14, 50'000), content = base;
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    const Bytes against_base = value_of(codec->encode(base, content));
    const Bytes alone = value_of(codec->encode({}, content));
    INFO(entry.name);
    CHECK(value_of(entry.make(kLevel)->encode({}, content)) == alone);
    CHECK(equal(value_of(codec->decode(base, against_base, content.size())), content));
    CHECK(equal(value_of(codec->decode({}, alone, content.size())), content));
  }
}

TEST_CASE("a damaged payload is an error or content of the right length", "[codec]") {
  const Bytes content = text_like(15, 700), base = edited(content, 16);
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    for (const bool with_base : {false, true}) {
      const ByteView used = with_base ? ByteView(base) : ByteView();
      const Bytes payload = value_of(codec->encode(used, content));
      testing::for_each_damage(payload, [&](const Bytes& damaged, const std::string& what) {
        const auto decoded = codec->decode(used, damaged, content.size());
        if (decoded && decoded->size() != content.size()) FAIL(entry.name << ": " << what);
        if (!decoded && decoded.error().code() != ErrorCode::corrupt)
          FAIL(entry.name << ": " << what << ": " << decoded.error().message());
      });
      // The damage must not have stayed in the codec.
      CHECK(equal(value_of(codec->decode(used, payload, content.size())), content));
    }
  }
}

TEST_CASE("a payload cut short is never taken for the whole", "[codec]") {
  const Bytes content = text_like(17, 3000), base = edited(content, 28);
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    for (const ByteView used : {ByteView(), ByteView(base)}) {
      const Bytes payload = value_of(codec->encode(used, content));
      testing::for_each_cut(payload, [&](const Bytes& cut, const std::string& what) {
        INFO(entry.name << ": " << what);
        CHECK(code_of(codec->decode(used, cut, content.size())) == ErrorCode::corrupt);
      });
    }
  }
}

TEST_CASE("a payload that gives more or fewer bytes than it should is corrupt", "[codec]") {
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{200'000}}) {
      const Bytes content = text_like(18, size), base = edited(content, 29);
      for (const ByteView used : {ByteView(), ByteView(base)}) {
        const Bytes payload = value_of(codec->encode(used, content));
        INFO(entry.name << " " << size);
        for (const std::size_t wrong : {size - 1, size + 1, std::size_t{0}, 10 * size})
          CHECK(code_of(codec->decode(used, payload, wrong)) == ErrorCode::corrupt);
      }
    }
  }
}

TEST_CASE("random bytes as a payload are an error or content of the right length", "[codec]") {
  testing::Random random(19);
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    const Bytes start = value_of(codec->encode({}, text_like(20, 500)));
    for (int round = 0; round < 3000; ++round) {
      Bytes payload = random_bytes(random.next(), random.below(200));
      // Half of them look right at first.
      if (round % 2 == 0)
        payload.insert(payload.begin(), start.begin(),
                       start.begin() + static_cast<std::ptrdiff_t>(random.below(start.size())));
      const std::size_t size = random.below(1000);
      const auto decoded = codec->decode({}, payload, size);
      if (decoded && decoded->size() != size) FAIL(entry.name);
    }
  }
}

TEST_CASE("a wrong base gives an error or other bytes, never a crash", "[codec]") {
  const Bytes base = text_like(21, 10'000), content = edited(base, 22);
  for (const CodecEntry& entry : all_codecs()) {
    const std::unique_ptr<Codec> codec = entry.make(kLevel);
    const Bytes payload = value_of(codec->encode(base, content));
    for (const Bytes& wrong : {Bytes{}, Bytes{1}, text_like(23, 10'000), edited(base, 30),
                               Bytes(base.begin(), base.begin() + 5000), Bytes(base.begin(), base.end() - 1),
                               random_bytes(24, 1 << 20)}) {
      const auto decoded = codec->decode(wrong, payload, content.size());
      INFO(entry.name << " " << wrong.size());
      CHECK((!decoded || decoded->size() == content.size()));
    }
  }
}

TEST_CASE("codecs have different numbers and names, and are found by number", "[codec]") {
  std::set<std::uint8_t> ids;
  std::set<std::string> names;
  for (const CodecEntry& entry : all_codecs()) {
    const auto id = static_cast<std::uint8_t>(entry.id);
    ids.insert(id);
    names.insert(entry.name);
    CHECK(find_codec(id) == &entry);
  }
  CHECK(ids.size() == all_codecs().size());
  CHECK(names.size() == all_codecs().size());
  CHECK(find_codec(255) == nullptr);
}

TEST_CASE("the numbers of codecs never change", "[codec]") {
  REQUIRE(find_codec(0) != nullptr);
  REQUIRE(find_codec(1) != nullptr);
  CHECK(std::string(find_codec(0)->name) == "plain");
  CHECK(std::string(find_codec(1)->name) == "zstd");
  REQUIRE(find_codec(2) != nullptr);
  CHECK(std::string(find_codec(2)->name) == "xdelta3");
}

TEST_CASE("zstd makes text small, and a near copy of its base tiny", "[codec][zstd]") {
  const std::unique_ptr<Codec> codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(kLevel);
  const Bytes text = text_like(25, 100'000);
  CHECK(value_of(codec->encode({}, text)).size() < text.size() / 2);
  const Bytes noise = random_bytes(26, 1 << 20);
  CHECK(value_of(codec->encode(noise, edited(noise, 27))).size() < 1000);
  // The far end of the base is within reach.
  const Bytes start(noise.begin(), noise.begin() + 300'000);
  CHECK(value_of(codec->encode(noise, start)).size() < 1000);
}

TEST_CASE("what was put into a large base costs little, at any level", "[codec]") {
  const Bytes base = random_bytes(31, 4 << 20);
  Bytes content = base;
  content.insert(content.begin() + 100, {1, 2, 3});
  for (const CodecEntry& entry : all_codecs()) {
    if (entry.id == CodecId::plain) continue;
    for (const int level : {1, 3, 6, 9}) {
      const std::unique_ptr<Codec> codec = entry.make(level);
      const Bytes payload = value_of(codec->encode(base, content));
      INFO(entry.name << " level " << level);
      CHECK(payload.size() < 2000);
      CHECK(equal(value_of(codec->decode(base, payload, content.size())), content));
    }
  }
}

TEST_CASE("xdelta3 makes a near copy of its base tiny, whatever their size", "[codec]") {
  const std::unique_ptr<Codec> codec = find_codec(static_cast<std::uint8_t>(CodecId::xdelta3))->make(kLevel);
  for (const std::size_t size : {1000, 100'000, 20 << 20}) {  // the last in several windows
    const Bytes base = random_bytes(32, size), content = edited(base, 33);
    const Bytes payload = value_of(codec->encode(base, content));
    INFO(size);
    CHECK(payload.size() < 200);
    CHECK(equal(value_of(codec->decode(base, payload, content.size())), content));
  }
}

TEST_CASE("zstd does not unpack more than was asked for", "[codec][zstd]") {
  const std::unique_ptr<Codec> codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(kLevel);
  const Bytes bomb = value_of(codec->encode({}, Bytes(60 << 20)));
  REQUIRE(bomb.size() < 10'000);
  CHECK(code_of(codec->decode({}, bomb, 1000)) == ErrorCode::corrupt);
}

}  // namespace kin
