#include "lib/base/crc32.h"
#include "lib/similarity/sif_anchors.h"
#include "lib/similarity/sif_fingerprint.h"
#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"

namespace kin {
namespace {

using testing::value_of;

Print sif_print(ByteView content, const char* detector = "sif") {
  MemoryContent reader(content);
  return value_of(find_detector(detector)->make()->print(reader, ""));
}

double sif_percent(ByteView query, ByteView other) {
  const auto detector = find_detector("sif")->make();
  const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
  testing::require_ok(index->add(1, sif_print(other)));
  const auto found = value_of(index->find(sif_print(query), {}));
  return found.empty() ? 0 : found.front().similarity;
}

}  // namespace

TEST_CASE("fingerprints are those of every 50-byte substring, without overlaps", "[sif]") {
  const Bytes content = testing::text_like(1, 30'000);
  std::vector<std::uint64_t> expected;
  for (std::size_t at = 0; at + kSifBytes <= content.size();) {
    std::uint64_t sum = 0, power = 1;  // the polynomial from its definition, from the last term on
    for (std::size_t i = kSifBytes; i-- > 0; power = power * SifPolynomial::kPrime % SifPolynomial::kModulus)
      sum = (sum + (content[at + i] + std::uint64_t{1}) * power) % SifPolynomial::kModulus;
    if (sum % 256 == 0) {
      expected.push_back(sum / 256);
      at += kSifBytes;
    } else {
      ++at;
    }
  }
  CHECK(expected.size() > 80);
  const Print print = sif_print(content);
  CHECK(print.values == expected);
  CHECK(print.checksum == crc32(content));
}

TEST_CASE("the similarity of a part to the whole is all, and of the whole to the part little", "[sif]") {
  const Bytes whole = testing::text_like(2, 100'000);
  const ByteView part = ByteView(whole).subspan(30'000, 20'000);
  CHECK(sif_percent(part, whole) == Approx(1));
  CHECK(sif_percent(whole, part) == Approx(0.2).margin(0.06));
}

TEST_CASE("a file that holds another twice resembles it by more than 100 %", "[sif]") {
  const Bytes once = testing::text_like(3, 50'000);
  Bytes twice = once;
  append(twice, once);
  CHECK(sif_percent(once, twice) == Approx(2).margin(0.05));
}

TEST_CASE("half of a file changed leaves a similarity between a third and two thirds", "[sif]") {
  Bytes changed = testing::text_like(4, 30'000);
  const Bytes before = changed;
  testing::Random random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = random.below(changed.size() - 50);
    const Bytes noise = testing::text_like(random.next(), 50);
    std::copy(noise.begin(), noise.end(), changed.begin() + static_cast<std::ptrdiff_t>(at));
  }
  CHECK(sif_percent(changed, before) > 0.2);
  CHECK(sif_percent(changed, before) < 0.7);
}

TEST_CASE("fingerprints of different substrings differ, also among many", "[sif]") {
  std::vector<std::uint64_t> values = sif_print(testing::random_bytes(7, 8 << 20)).values;
  REQUIRE(values.size() > 20'000);  // with 22 bits about 80 would be the same by chance
  std::sort(values.begin(), values.end());
  CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
}

TEST_CASE("runs of one byte give no fingerprint", "[sif]") {
  for (unsigned byte = 0; byte < 256; ++byte)
    CHECK(sif_print(Bytes(500, static_cast<std::uint8_t>(byte))).values.empty());
}

TEST_CASE("text and other files are told apart by their first bytes", "[sif]") {
  CHECK(sif_kind(as_bytes("Some text,\r\n\twith tabs\n")) == 1);
  CHECK(sif_kind(as_bytes("gr\xc3\xbc\xc3\x9f")) == 1);
  CHECK(sif_kind({}) == 1);
  CHECK(sif_kind(as_bytes(std::string_view("ELF\0more", 8))) == 0);
  CHECK(sif_kind(testing::random_bytes(6, 4096)) == 0);
}

TEST_CASE("anchors are common strings of letters, but not too common ones", "[sif]") {
  // 40,000 bytes: 'late' comes 5 times, 'must' 9 times, 'that' 40 times, which is too often. 200 of the kept
  // ones would be needed for one in 200 bytes, so all that are there are taken.
  std::string text;
  const auto add = [&](const char* word, int times) {
    for (int i = 0; i < times; ++i) text += std::string(word) + " ";
  };
  add("that", 40);
  add("must", 9);
  add("late", 5);
  text.resize(40'000, '.');
  CHECK(choose_anchors(as_bytes(text)) == std::vector<std::string>{"must", "late"});
  text.resize(2'000);  // now even 5 times are too many
  CHECK(choose_anchors(as_bytes(text)).empty());
}

TEST_CASE("a fingerprint begins at each anchor, wherever it is", "[sif]") {
  const std::string piece = "each of the 50 bytes from here on counts for it.............";
  const std::string a = "xx " + piece, b = "another beginning ... " + piece;
  const Print first = sif_print(as_bytes(a), "sif-anchors"), second = sif_print(as_bytes(b), "sif-anchors");
  REQUIRE(first.values.size() == 1);
  CHECK(first.values == second.values);
  CHECK(first.values[0] == SifPolynomial::of(as_bytes(piece).data()) % SifPolynomial::kModulus);
}

TEST_CASE("the set of anchors has its anchors and nothing else", "[sif]") {
  const AnchorSet set(usual_anchors());
  for (const char* anchor : usual_anchors()) CHECK(set.contains(AnchorSet::load(as_bytes(anchor).data())));
  CHECK_FALSE(set.contains(AnchorSet::load(as_bytes("zzzz").data())));
  CHECK_FALSE(set.contains(0));
}

}  // namespace kin
