#include "lib/similarity/shingle_matrix.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

std::string matrix_of(const std::vector<std::string>& names, const std::vector<Shingleprint>& prints) {
  std::string out;
  write_shingle_matrix(names, prints, [&](std::string_view text) {
    out += text;
    return true;
  });
  return out;
}

Shingleprint with(std::vector<std::uint32_t> features) {
  return {8, ShingleHash::crc32, std::move(features)};
}

}  // namespace

TEST_CASE("a matrix is laid out as simhash's", "[shingle_matrix]") {
  CHECK(matrix_of({"a", "bb", "c"}, {with({9, 8, 7}), with({9, 8, 1}), with({})}) ==
        "        1   2\n"
        "a    1\n"
        "bb   2 .50\n"
        "c    3  ?   ? \n");
  CHECK(matrix_of({"a"}, {with({1})}) == "        0\na   1\n");
  CHECK(matrix_of({}, {}).empty());
}

TEST_CASE("the scores of a matrix are those of pairs, of any number of files", "[shingle_matrix]") {
  testing::Random random(1);
  std::vector<Shingleprint> prints;
  std::vector<std::string> names;
  for (int i = 0; i < 1'001; ++i) {
    Shingleprint print = with({});
    for (std::uint32_t value = 60; value > 0; --value)
      if (random.below(3) == 0) print.features.push_back(value);
    prints.push_back(std::move(print));
    names.push_back("f");
  }
  const std::string matrix = matrix_of(names, prints);
  std::string expected = "f 1001";
  for (std::size_t i = 0; i < 1'000; ++i)
    expected +=
        "  " + shingle_score_text(shingle_score(shingle_matches(prints[1'000], prints[i]),
                                                prints[1'000].features.size(), prints[i].features.size()));
  CHECK(matrix.substr(matrix.rfind("f 1001")) == expected + "\n");
}

TEST_CASE("a score is cut, not rounded", "[shingle_matrix]") {
  CHECK(shingle_score_text(0) == ".00");
  CHECK(shingle_score_text(0.999) == ".99");
  CHECK(shingle_score_text(0.0999) == ".09");
  CHECK(shingle_score_text(1) == "1.0");
}

}  // namespace kin
