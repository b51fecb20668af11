// Tables that were used before must tell the next predictor nothing.
#include "formats/deflate/chain_tables.h"

#include "formats/deflate/long_chains.h"
#include "formats/deflate/parameters.h"
#include "formats/deflate/predictor.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <vector>

namespace kin::formats::deflate {
namespace {

constexpr std::uint32_t kSize = 80'000;  // more than any ring has

// What there is to predict, and as much around it as a predictor may read.
Bytes content() {
  Bytes out(kFirstPosition);
  append(out, testing::text_like(1, kSize));
  out.resize(out.size() + kReadBeyond);
  return out;
}

std::vector<Parameters> various_parameters() {
  std::vector<Parameters> out;
  for (const int level : {1, 6, 9})
    for (const HashKind hash : {HashKind::zlib, HashKind::multiplied_4})
      for (const int bits : {9, 15, 17})
        for (const bool zlib_window : {true, false}) {
          Parameters row = zlib_level(level);
          row.hash = hash;
          row.hash_bits = static_cast<std::uint8_t>(bits);
          row.zlib_window = zlib_window;
          row.flush = FlushHistory::clear;
          out.push_back(row);
        }
  return out;
}

// All that is predicted, with a flush on the way; the buffer loses its first bytes at `drop_at`, if not 0.
std::vector<Token> predictions(const Bytes& bytes, const Parameters& parameters, SearchTables& tables,
                               std::uint32_t drop_at = 0) {
  SearchWork work;
  const auto predictor = Predictor::make(parameters, kFirstPosition, tables, work);
  predictor->set_bytes(bytes.data(), 0);
  std::vector<Token> out;
  std::uint32_t dropped = 0;
  bool flushed = false;
  for (std::uint32_t at = kFirstPosition; at < kFirstPosition + kSize;) {
    if (!flushed && at > kSize / 4) {
      predictor->flushed(at);
      flushed = true;
    }
    if (drop_at != 0 && dropped == 0 && at > drop_at) {
      dropped = at - kMostDistance - kFirstPosition;
      predictor->set_bytes(bytes.data() + dropped, dropped);
    }
    const Token token = predictor->predict(at - dropped, kFirstPosition + kSize - dropped);
    predictor->advance(at - dropped, token);
    out.push_back(token);
    at += token.length;
  }
  return out;
}

TEST_CASE("tables that have forgotten everything are as good as new", "[deflate]") {
  const Bytes bytes = content();
  SearchTables used;
  std::uint32_t round = 0;
  for (const Parameters& parameters : various_parameters()) {
    SearchTables unused;
    const std::vector<Token> expected = predictions(bytes, parameters, unused);
    CHECK(predictions(bytes, parameters, used) == expected);
    CHECK(expected.size() < kSize / 2);  // there was something to find
    // Large ones, too, until they must be counted from 0 again.
    used.forget(std::vector<std::uint32_t>{kSize + kFirstPosition, 1 << 27, 1 << 28, 1 << 30}[round++ % 4]);
  }
}

TEST_CASE("tables know any place, whatever they have forgotten", "[deflate]") {
  constexpr std::uint32_t kLast = (1U << 30) + kMostDistance + kFirstPosition;
  ChainTables tables;
  tables.start(9, 65536);
  for (const std::uint32_t end : {1U << 20, 1U << 28, 1U << 28, 1U << 28, kLast, kLast}) {
    tables.forget(end);
    for (const std::uint32_t at : {0U, 70'000U, kLast}) {
      CHECK(static_cast<std::int32_t>(at) - tables.head(7) > ChainTables::kTooFar);
      tables.insert(at, 7);
      CHECK(tables.head(7) == static_cast<std::int32_t>(at));
      CHECK(tables.steps()[at & tables.ring_mask()] == ChainTables::kTooFar);
    }
    tables.insert(kLast + 3, 7);
    CHECK(tables.steps()[(kLast + 3) & tables.ring_mask()] == 3);
    tables.drop(kLast);
    CHECK(tables.head(7) == 3);
    tables.forget(4);
  }
}

TEST_CASE("a buffer that moves changes no prediction", "[deflate]") {
  const Bytes bytes = content();
  for (const Parameters& parameters : various_parameters()) {
    SearchTables still, moved, moved_later;
    const std::vector<Token> expected = predictions(bytes, parameters, still);
    CHECK(predictions(bytes, parameters, moved, kMostDistance + 5000) == expected);
    CHECK(predictions(bytes, parameters, moved_later, kMostDistance + 40'000) == expected);
  }
}

}  // namespace
}  // namespace kin::formats::deflate
