#include "formats/deflate/predictor.h"

#include "formats/deflate/chain_predictor.h"
#include "formats/deflate/fast_predictor.h"
#include "formats/deflate/optimal_predictor.h"

#include <algorithm>

namespace kin::formats::deflate {
namespace {

// Encoders that look for no matches, or for runs of one byte only.
class RunPredictor final : public Predictor {
 public:
  RunPredictor(bool finds_runs, std::uint32_t first, SearchWork& work)
      : finds_runs_(finds_runs), first_(first), work_(work) {}

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override {
    bytes_ = bytes;
    first_ -= std::min(first_, dropped);
  }
  void begin_block(std::uint32_t, std::uint32_t, ByteView, ByteView) override {}
  Token predict(std::uint32_t at, std::uint32_t limit) override {
    found_ = {};
    if (!finds_runs_ || at <= first_ || at >= limit) return {};
    const std::uint32_t most = std::min(kMostMatch, limit - at);
    const std::uint8_t value = bytes_[at - 1];
    std::uint32_t length = 0;
    while (length < most && bytes_[at + length] == value) ++length;
    work_.steps += length;
    if (length >= kLeastMatch) found_ = {static_cast<std::uint16_t>(length), 1};
    return found_;
  }
  Token match_instead() const override { return found_; }
  void advance(std::uint32_t, Token) override {}
  std::optional<std::uint32_t> hops_to(std::uint32_t, std::uint32_t, std::uint32_t distance) override {
    return distance == 1 ? std::optional<std::uint32_t>(0) : std::nullopt;
  }
  std::optional<std::uint32_t> distance_of(std::uint32_t, std::uint32_t, std::uint32_t hops) override {
    return hops == 0 ? std::optional<std::uint32_t>(1) : std::nullopt;
  }
  void flushed(std::uint32_t) override {}
  void restart(std::uint32_t) override {}

 private:
  bool finds_runs_;
  std::uint32_t first_;
  SearchWork& work_;
  const std::uint8_t* bytes_ = nullptr;
  Token found_;
};

}  // namespace

std::unique_ptr<Predictor> Predictor::make(const Parameters& parameters, std::uint32_t first,
                                           SearchTables& tables, SearchWork& work) {
  if (parameters.parser == Parser::literals || parameters.parser == Parser::runs)
    return std::make_unique<RunPredictor>(parameters.parser == Parser::runs, first, work);
  if (parameters.parser == Parser::optimal)
    return std::make_unique<OptimalPredictor>(parameters.chain, first, work);
  if (parameters.parser == Parser::fast) return std::make_unique<FastPredictor>(parameters.hash_bits);
  switch (parameters.hash) {
    case HashKind::zlib:
      return std::make_unique<ChainPredictor<ZlibHash>>(parameters, first, tables, work);
    case HashKind::crc32c_3:
      return std::make_unique<ChainPredictor<Crc32cHash<false>>>(parameters, first, tables, work);
    case HashKind::crc32c_4:
      return std::make_unique<ChainPredictor<Crc32cHash<true>>>(parameters, first, tables, work);
    case HashKind::multiplied_3:
      return std::make_unique<ChainPredictor<MultipliedHash<false>>>(parameters, first, tables, work);
    case HashKind::multiplied_4:
      return std::make_unique<ChainPredictor<MultipliedHash<true>>>(parameters, first, tables, work);
    case HashKind::chromium_4:
      return std::make_unique<ChainPredictor<ChromiumHash>>(parameters, first, tables, work);
  }
  return nullptr;  // decode_parameters lets no other through
}

}  // namespace kin::formats::deflate
