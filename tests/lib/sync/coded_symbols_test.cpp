#include "lib/sync/coded_symbols.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <algorithm>

namespace kin::sync::coded_symbols_test {
namespace {

constexpr std::uint64_t kKey = 0x1234;

using Ids = std::vector<ShortId>;

Ids random_ids(std::uint64_t seed, std::size_t count) {
  testing::Random random(seed);
  Ids ids(count);
  for (ShortId& id : ids) id = random.next();
  return ids;
}

std::vector<CodedSymbol> symbols_of(const Ids& ids, std::size_t first, std::size_t count,
                                    std::uint64_t key = kKey) {
  SymbolMaker maker(key, first, count);
  for (const ShortId id : ids) maker.add(id);
  return maker.symbols();
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// What both have cancels out, so that tests of the difference alone may leave it away.
struct TwoSets {
  TwoSets(std::uint64_t seed, std::size_t differences, std::size_t shared = 0)
      : theirs(random_ids(3 * seed, differences / 3)),
        ours(random_ids(3 * seed + 1, differences - differences / 3)) {
    both = random_ids(3 * seed + 2, shared);
  }
  Ids all_of(const Ids& one) const {
    Ids all = one;
    all.insert(all.end(), both.begin(), both.end());
    return all;
  }

  Ids theirs, ours, both;
};

// As many symbols, one at a time, as it takes; but no more than `most`.
std::size_t symbols_needed(const TwoSets& sets, std::size_t most) {
  const auto theirs = symbols_of(sets.all_of(sets.theirs), 0, most);
  const auto ours = symbols_of(sets.all_of(sets.ours), 0, most);
  SymbolDecoder decoder(kKey);
  while (!decoder.done() && decoder.symbols() < most) {
    const std::size_t at = decoder.symbols();
    decoder.add(std::span(theirs).subspan(at, 1), std::span(ours).subspan(at, 1));
  }
  CHECK_FALSE(decoder.failed());
  REQUIRE(decoder.done());
  CHECK(sorted(decoder.only_theirs()) == sorted(sets.theirs));
  CHECK(sorted(decoder.only_ours()) == sorted(sets.ours));
  CHECK(decoder.likely_needed() == 0);
  return decoder.symbols();
}

CodedSymbol single(ShortId id, std::int64_t count = 1) {
  CodedSymbol symbol = symbols_of({id}, 0, 1).front();
  symbol.count = count;
  return symbol;
}

}  // namespace

TEST_CASE("equal sets are done with the first symbol, and no symbol is not enough", "[sync]") {
  const auto symbols = symbols_of(random_ids(1, 1'000), 0, 1);
  SymbolDecoder decoder(kKey);
  CHECK_FALSE(decoder.done());
  decoder.add(symbols, symbols);
  CHECK(decoder.done());
  CHECK(decoder.only_theirs().empty());
  CHECK(decoder.only_ours().empty());

  SymbolDecoder of_empty_sets(kKey);
  of_empty_sets.add(std::vector<CodedSymbol>(1), std::vector<CodedSymbol>(1));
  CHECK(of_empty_sets.done());
}

TEST_CASE("differences among 100,000 ids are found", "[sync]") {
  // A single run may take several times the mean, so the bounds on numbers are below, over many runs.
  CHECK(symbols_needed(TwoSets(1, 1, 100'000), 48) == 1);
  for (const std::size_t differences : {10, 25, 100, 1'000})
    symbols_needed(TwoSets(2, differences, 100'000), 2 * differences + 100);
}

TEST_CASE("symbols are needed in proportion to the differences, on average", "[sync]") {
  const auto mean = [](std::size_t differences, std::size_t runs) {
    std::size_t all = 0;
    for (std::uint64_t seed = 0; seed < runs; ++seed)
      all += symbols_needed(TwoSets(seed, differences), 4 * differences + 300);
    return static_cast<double>(all) / static_cast<double>(runs);
  };
  CHECK(mean(10, 200) < 20);
  CHECK(mean(25, 100) < 45);
  const double of_100 = mean(100, 50);
  CHECK(of_100 < 160);
  CHECK(of_100 > 100);  // so many unknowns cannot come of fewer
  CHECK(mean(1'000, 5) < 1'450);
}

TEST_CASE("48 symbols are enough for 20 differences nine times out of ten", "[sync]") {
  int enough = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TwoSets sets(seed, 20);
    SymbolDecoder decoder(kKey);
    decoder.add(symbols_of(sets.theirs, 0, 48), symbols_of(sets.ours, 0, 48));
    enough += decoder.done() ? 1 : 0;
  }
  CHECK(enough >= 180);
}

TEST_CASE("symbols made in two batches are those made in one, in any order of the ids", "[sync]") {
  Ids ids = random_ids(7, 5'000);
  const auto at_once = symbols_of(ids, 0, 500);
  std::reverse(ids.begin(), ids.end());
  auto batches = symbols_of(ids, 0, 48);
  const auto rest = symbols_of(ids, 48, 452);
  batches.insert(batches.end(), rest.begin(), rest.end());
  CHECK(batches == at_once);
  CHECK(at_once[0].count == 5'000);
  // Number i has an id with probability 1 / (1 + i/2).
  CHECK(std::abs(at_once[1].count - 3'333) < 200);
  CHECK(std::abs(at_once[2].count - 2'500) < 200);
  CHECK(std::abs(at_once[18].count - 500) < 120);
  CHECK(symbols_of(ids, 0, 48, kKey + 1)[5] != at_once[5]);
}

TEST_CASE("which symbols an id is in never changes, since the other end may be an older kin", "[sync]") {
  std::vector<std::size_t> indexes;
  for (SymbolWalk walk(1, 2); indexes.size() < 12; walk.advance()) indexes.push_back(walk.index());
  CHECK(indexes == std::vector<std::size_t>{0, 1, 2, 5, 6, 8, 18, 28, 247, 254, 260, 267});
  const CodedSymbol symbol = symbols_of({2}, 0, 1, 1).front();
  CHECK(symbol.check == 0x2fa49690);
}

TEST_CASE("ids found early are taken away from symbols that come later", "[sync]") {
  const TwoSets sets(9, 200);
  const auto theirs = symbols_of(sets.theirs, 0, 600), ours = symbols_of(sets.ours, 0, 600);
  SymbolDecoder decoder(kKey);
  for (const std::size_t end : {100, 230, 400, 600}) {
    const std::size_t at = decoder.symbols();
    decoder.add(std::span(theirs).subspan(at, end - at), std::span(ours).subspan(at, end - at));
  }
  REQUIRE(decoder.done());
  CHECK(sorted(decoder.only_theirs()) == sorted(sets.theirs));
  CHECK(sorted(decoder.only_ours()) == sorted(sets.ours));
}

TEST_CASE("symbols come back from bytes as they were, and every cut is noticed", "[sync]") {
  const Ids ids = random_ids(11, 10'000);
  for (const std::size_t first : {0, 48, 5'000}) {
    const auto symbols = symbols_of(ids, first, 30);
    WireWriter out;
    encode_symbols(symbols, first, ids.size(), out);
    CHECK(out.size() < 30 * 14 + 5);  // counts are close to what they are on average
    WireReader in(out.bytes());
    CHECK(decode_symbols(first, 30, ids.size(), in) == symbols);
    testing::require_ok(in.finish("symbols"));
    for (std::size_t size = 0; size < out.size(); ++size) {
      WireReader cut(ByteView(out.bytes()).first(size));
      CHECK(decode_symbols(first, 30, ids.size(), cut).empty());
      CHECK(cut.failed());
    }
  }
}

TEST_CASE("numbers that cannot be do no harm in symbols from the wire", "[sync]") {
  const std::vector<CodedSymbol> extremes = {{~0ULL, ~0U, INT64_MIN}, {0, 0, INT64_MAX}, {1, 1, -1}};
  const std::uint64_t sizes[] = {0, 1, UINT64_MAX, 1ULL << 63};
  for (const std::uint64_t size : sizes) {
    for (const std::size_t first : {std::size_t{0}, SIZE_MAX - 2, SIZE_MAX - 1, SIZE_MAX}) {
      WireWriter bytes;
      encode_symbols(extremes, first, size, bytes);
      WireReader in(bytes.bytes());
      CHECK(decode_symbols(first, extremes.size(), size, in) == extremes);
      CHECK_FALSE(in.failed());
    }
  }
  WireReader few(ByteView{});
  CHECK(decode_symbols(0, SIZE_MAX, 1, few).empty());  // and nothing is allocated for them
  CHECK(few.failed());

  SymbolDecoder decoder(kKey);
  std::vector<CodedSymbol> zero(extremes.size());
  decoder.add(extremes, zero);
  decoder.add(zero, extremes);
  CHECK_FALSE(decoder.done());
  CHECK(decoder.likely_needed() <= 1ULL << 40);
}

TEST_CASE("symbols of no set end in no difference, and they do end", "[sync]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::Random random(seed);
    SymbolDecoder decoder(kKey);
    for (int batch = 0; batch < 10; ++batch) {
      std::vector<CodedSymbol> theirs, ours(50);
      for (std::size_t i = 0; i < 50; ++i) {
        // Some are noise, some are ids where they may not be, few and the same ones again and again.
        if (random.below(2) == 0)
          theirs.push_back(single(random.below(8), random.below(2) == 0 ? 1 : -1));
        else
          theirs.push_back({random.next(), static_cast<std::uint32_t>(random.next()),
                            static_cast<std::int64_t>(random.below(5)) - 2});
      }
      decoder.add(theirs, ours);
    }
    CHECK(decoder.symbols() == 500);
    CHECK_FALSE(decoder.done());
    CHECK(decoder.only_theirs().size() + decoder.only_ours().size() <= decoder.symbols());
  }
}

TEST_CASE("an id that contradicts itself is a failure and no endless loop", "[sync]") {
  // It is in the first symbol, and in none of the others that it has to be in.
  std::vector<CodedSymbol> lie(20);
  lie[0] = single(42);
  SymbolDecoder decoder(kKey);
  decoder.add(lie, std::vector<CodedSymbol>(20));
  CHECK(decoder.failed());
  CHECK_FALSE(decoder.done());
  decoder.add(std::vector<CodedSymbol>(5), std::vector<CodedSymbol>(5));
  CHECK_FALSE(decoder.done());
  CHECK(decoder.symbols() == 25);
}

TEST_CASE("an id in a symbol where it cannot be is not believed", "[sync]") {
  const auto honest = symbols_of({42}, 0, 20);
  std::size_t free = 0;
  while (honest[free].count != 0) ++free;
  std::vector<CodedSymbol> lie(20);
  lie[free] = single(42);
  SymbolDecoder decoder(kKey);
  decoder.add(lie, std::vector<CodedSymbol>(20));
  CHECK_FALSE(decoder.done());
  CHECK(decoder.only_theirs().empty());
}

TEST_CASE("how many symbols are needed is known within a factor of two after 48", "[sync]") {
  for (const std::size_t differences : {1'000, 10'000}) {
    const std::size_t runs = differences == 1'000 ? 40 : 8;
    std::size_t good = 0;
    for (std::uint64_t seed = 0; seed < runs; ++seed) {
      const TwoSets sets(100 + seed, differences);
      SymbolDecoder decoder(kKey);
      decoder.add(symbols_of(sets.theirs, 0, 48), symbols_of(sets.ours, 0, 48));
      REQUIRE_FALSE(decoder.done());
      const std::size_t likely = decoder.likely_needed();
      const std::size_t truth = symbols_needed(sets, 2 * differences) - 48;
      good += likely <= 2 * truth && truth <= 2 * likely ? 1 : 0;
    }
    CHECK(good * 10 >= runs * 9);
  }
}

TEST_CASE("how many symbols are needed is known where one end has nothing", "[sync]") {
  // Where p(i) were only nearly 1 / (1 + i/2), the error would grow with the square of the difference.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SymbolDecoder decoder(kKey);
    decoder.add(symbols_of(random_ids(seed, 100'000), 0, 48), std::vector<CodedSymbol>(48));
    CHECK(decoder.likely_needed() > 68'000);
    CHECK(decoder.likely_needed() < 272'000);
  }
}

TEST_CASE("asking for what is likely needed ends soon", "[sync]") {
  for (const std::size_t differences : {3, 30, 300, 3'000}) {
    const TwoSets sets(200 + differences, differences);
    SymbolDecoder decoder(kKey);
    std::size_t more = 48, turns = 0;
    for (; more > 0 && turns < 20; ++turns) {
      const std::size_t at = decoder.symbols();
      decoder.add(symbols_of(sets.theirs, at, more), symbols_of(sets.ours, at, more));
      more = decoder.likely_needed();
    }
    CHECK(decoder.done());
    CHECK(turns <= 5);
    CHECK(decoder.symbols() <= std::max<std::size_t>(48, 2 * differences));
  }
}

}  // namespace kin::sync::coded_symbols_test
