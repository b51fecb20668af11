// Finds the Parameters of the encoder that made some blocks, by trying the encoders that we know.
#pragma once

#include "formats/deflate/block.h"
#include "formats/deflate/parameters.h"
#include "formats/deflate/plain_window.h"
#include "formats/deflate/search_work.h"

#include <optional>
#include <span>

namespace kin::formats::deflate {

struct EstimateInput {
  std::span<const Block> blocks;  // from window.position() on
  const PlainWindow& window;
  bool last = false;  // the window has the stream's end
};

struct Estimate {
  Parameters parameters;
  // These parameters predict every token of the blocks, and there is nothing but tokens in them: no search
  // has to be made again to know what a predictor would answer.
  bool predicts_all = false;
  bool none_wrong = false;  // of those that were tried
};

bool only_tokens(const EstimateInput& input);  // no byte is in a stored block

// `expected` is tried first, and taken if it predicts every token of the trial. With `may_guess`, some
// thousand tokens are enough to say that it predicts all. Once the work is spent, the answer is of no use.
Estimate estimate(const EstimateInput& input, const std::optional<Parameters>& expected, bool may_guess,
                  SearchWork& work);
// Only what the block ends tell: the rule, with the rest as it is.
Parameters with_block_rule(const EstimateInput& input, Parameters parameters);

// Why this block, which starts at a place of the window, ended.
EndKind end_kind(const Block& block, const Parameters& parameters, const PlainWindow& window,
                 std::uint32_t start);

}  // namespace kin::formats::deflate
