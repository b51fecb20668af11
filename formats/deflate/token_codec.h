// TokenCodec: a token, coded as whether it is the predicted one and, if not, how it differs.
#pragma once

#include "formats/deflate/predictor.h"
#include "formats/deflate/range_coder.h"
#include "formats/deflate/token.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kin::formats::deflate {

class TokenCodec {
 public:
  // The last tokens were as predicted, so that nothing else matters for the next if it is so too.
  bool is_steady() const { return recent_ == 0; }
  // False if what was decoded is no token. `token` is what is coded, or takes what was.
  template <class Coder, class AnyPredictor>
  bool code(Coder& coder, AnyPredictor& predictor, std::uint32_t at, Token predicted, Token& token) {
    Chance& chance = recent_ == 0 ? steady_[predicted.is_literal() ? 0 : 1] : unsteady(predicted, predictor);
    const bool wrong = coder.bit(chance, token != predicted);
    recent_ = static_cast<std::uint8_t>(recent_ << 1 | (wrong ? 1 : 0));
    if (!wrong) {
      token = predicted;
      return true;
    }
    Token expected = predicted;
    auto& models = wrong_[predicted.is_literal() ? 0 : 1];
    if (predicted.is_literal())
      expected = predictor.match_instead();
    else if (coder.bit(models.literal[std::min<std::size_t>(predicted.length, 15)], token.is_literal())) {
      token = {};
      return true;
    }
    return code_match(coder, models, predictor, at, expected, token);
  }

 private:
  struct Models {
    std::array<Chance, 16> literal;
    std::array<NumberModel, 16> length;
    std::array<Chance, 16> same_length;
    std::array<std::array<NumberModel, 3>, 2> hops;
    std::array<Chance, 2> unknown;
    NumberModel distance;
  };

  // Errors come together, and depend on how long a match is.
  Chance& unsteady(Token predicted, const Predictor& predictor) {
    const std::size_t recent = (recent_ & 3U) | ((recent_ & 0x3cU) != 0 ? 4U : 0U);
    const Token match = predicted.is_literal() ? predictor.match_instead() : predicted;
    const std::size_t length = std::min<std::size_t>(match.length, 23);
    return unsteady_[predicted.is_literal() ? 0 : 1][length][recent];
  }

  template <class Coder>
  bool code_match(Coder& coder, Models& models, Predictor& predictor, std::uint32_t at, Token expected,
                  Token& token) {
    const std::size_t bucket = std::min<std::size_t>(expected.length, 15);
    const std::int32_t base = std::max<std::int32_t>(expected.length, kLeastMatch);
    const bool same = coder.bit(models.same_length[bucket], token.length == base);
    std::int32_t length = base;
    if (!same) {
      length += models.length[bucket].code_signed(coder, token.length - base);
      if (length < static_cast<std::int32_t>(kLeastMatch) || length > static_cast<std::int32_t>(kMostMatch))
        return false;
    }
    const auto real_length = static_cast<std::uint32_t>(length);
    std::optional<std::uint32_t> hops;
    if constexpr (!Coder::kDecodes) hops = predictor.hops_to(at, real_length, token.distance);
    std::uint32_t distance = token.distance;
    if (coder.bit(models.unknown[same ? 1 : 0], !hops)) {
      distance = models.distance.code(coder, token.distance - 1U) + 1;
    } else {
      const std::size_t by_length = real_length == 3 ? 0 : real_length < 6 ? 1 : 2;
      const std::uint32_t got = models.hops[same ? 1 : 0][by_length].code(coder, hops.value_or(0));
      if constexpr (Coder::kDecodes) {
        const auto found = predictor.distance_of(at, real_length, got);
        if (!found) return false;
        distance = *found;
      }
    }
    if (distance == 0 || distance > kMostDistance) return false;
    token = {static_cast<std::uint16_t>(real_length), static_cast<std::uint16_t>(distance)};
    return true;
  }

  std::uint8_t recent_ = 0;  // the last eight, 1 for wrong
  std::array<Chance, 2> steady_;
  std::array<std::array<std::array<Chance, 8>, 24>, 2> unsteady_;
  std::array<Models, 2> wrong_;
};

}  // namespace kin::formats::deflate
