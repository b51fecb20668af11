// What is found without walking along a chain must be what the walk finds.
#include "formats/deflate/long_chains.h"

#include "formats/deflate/hash_functions.h"
#include "formats/deflate/parameters.h"
#include "formats/deflate/predictor.h"
#include "formats/deflate/same_bytes.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace kin::formats::deflate {
namespace {

// zlib's lazy parser, as plainly as it can be written: each chain is a list of all its places.
class PlainParser {
 public:
  PlainParser(const Parameters& parameters, const Bytes& bytes, std::uint32_t end)
      : parameters_(parameters), hash_(parameters.hash_bits), bytes_(bytes), end_(end) {}

  Token predict(std::uint32_t at) {
    const Token now = search(at, 2, parameters_.chain);
    if (pending_at_ == at) return after(at, pending_);
    return after(at, now);
  }
  void flushed(std::uint32_t at) {
    chains_.clear();
    first_ = at;
  }

 private:
  Token after(std::uint32_t at, Token found) {
    if (found.is_literal() || found.length >= parameters_.lazy) return found;
    const std::uint32_t chain = parameters_.chain >> (found.length >= parameters_.good ? 2 : 0);
    const Token later = search(at + 1, found.length, chain);
    if (later.is_literal()) return found;
    pending_at_ = at + 1;
    pending_ = later;
    return {};
  }

  Token search(std::uint32_t at, std::uint32_t best, std::uint32_t chain) {
    for (; next_ < at; ++next_)
      if (next_ >= first_) chains_[hash_(bytes_.data() + next_)].push_back(next_);
    Token out;
    const std::uint32_t ahead = at < end_ ? end_ - at : 0;
    if (ahead < kLeastMatch) return {};
    const auto& places = chains_[hash_(bytes_.data() + at)];
    const std::uint32_t nice = std::min<std::uint32_t>(parameters_.nice, ahead);
    std::uint32_t seen = 0;
    for (auto place = places.rbegin(); place != places.rend() && seen < chain; ++place, ++seen) {
      if (at - *place > (1U << parameters_.window_bits) - (seen == 0 ? 262 : 263)) break;
      const std::uint32_t length =
          same_bytes(bytes_.data() + at, bytes_.data() + *place, std::min(kMostMatch, ahead));
      if (length <= best) continue;
      best = length;
      out = {static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(at - *place)};
      if (length >= nice) break;
    }
    if (out.length == 3 && out.distance > 4096) return {};
    return out;
  }

  Parameters parameters_;
  ZlibHash hash_;
  const Bytes& bytes_;
  std::uint32_t end_, first_ = kFirstPosition + 1, next_ = kFirstPosition;
  std::uint32_t pending_at_ = 0;
  Token pending_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> chains_;
};

// Few different bytes, in runs and with periods: long chains of all kinds.
Bytes repetitive(std::size_t size) {
  testing::Random random(5);
  Bytes out;
  while (out.size() < size) {
    const std::uint64_t length = 1 + random.below(300), back = 1 + random.below(40'000);
    if (random.below(3) == 0 || out.size() < back)
      for (std::uint64_t i = 0; i < length / 8 + 1; ++i)
        out.push_back(static_cast<std::uint8_t>(random.below(3)));
    else
      for (std::uint64_t i = 0; i < length; ++i) out.push_back(out[out.size() - back]);
  }
  out.resize(size);
  return out;
}

TEST_CASE("a far search finds what a walk along the whole chain finds", "[deflate]") {
  constexpr std::uint32_t kFarBytes = 70'000;
  for (const Bytes& content :
       {testing::text_like(2, kFarBytes), repetitive(kFarBytes), Bytes(kFarBytes, 'a')}) {
    Bytes bytes(kFirstPosition);
    append(bytes, content);
    bytes.resize(bytes.size() + kReadBeyond);
    const std::uint32_t end = kFirstPosition + kFarBytes;
    for (const int level : {6, 7, 8, 9})
      for (const std::size_t expected_bytes : {std::size_t{0}, std::size_t{kFarBytes}}) {
        Parameters parameters = zlib_level(level);
        parameters.flush = FlushHistory::clear;
        if (expected_bytes == 0) parameters.hash_bits = 9;
        SearchTables tables(expected_bytes);
        SearchWork work;
        const auto predictor = Predictor::make(parameters, kFirstPosition, tables, work);
        predictor->set_bytes(bytes.data(), 0);
        PlainParser plain(parameters, bytes, end);
        std::size_t differences = 0;
        bool flushed = false;
        for (std::uint32_t at = kFirstPosition; at < end;) {
          if (!flushed && at > 9 * kFarBytes / 10) {
            flushed = true;
            predictor->flushed(at);
            plain.flushed(at);
          }
          const Token token = predictor->predict(at, end);
          if (plain.predict(at) != token) ++differences;
          predictor->advance(at, token);
          at += token.length;
        }
        CHECK(differences == 0);
      }
  }
}

}  // namespace
}  // namespace kin::formats::deflate
