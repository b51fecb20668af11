// StreamCodec: the state that opener and rebuilder share, and the one description of what is coded per block.
// The opener runs it with a RangeEncoder and true blocks, the rebuilder with a RangeDecoder and gets them.
#pragma once

#include "formats/deflate/block.h"
#include "formats/deflate/block_end.h"
#include "formats/deflate/chain_predictor.h"
#include "formats/deflate/header_codec.h"
#include "formats/deflate/huffman.h"
#include "formats/deflate/long_chains.h"
#include "formats/deflate/parameters.h"
#include "formats/deflate/plain_window.h"
#include "formats/deflate/predictor.h"
#include "formats/deflate/range_coder.h"
#include "formats/deflate/recorded_predictor.h"
#include "formats/deflate/search_work.h"
#include "formats/deflate/token_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace kin::formats::deflate {

// What a StreamCodec knows at a place of the stream, besides what its predictor does.
struct StreamState {
  PlainWindow window_;
  Parameters parameters_;
  TokenCodec token_;
  HeaderCodec header_;
  std::array<std::array<std::array<Chance, 8>, 2>, kEndKinds> end_kind_;  // by the kind before
  std::array<Chance, kEndKinds> final_;
  std::array<Chance, 8> empty_stored_;  // by the bit it starts with
  std::array<Chance, 2> other_type_;
  Chance same_gap_, same_stored_, padded_, any_irregular_;
  Chance fixed_first_;
  NumberModel plain_size_;
  DynamicHeader last_header_ = flat_header();
  NumberModel count_, gap_, stored_, padding_, irregular_;
  EndKind previous_end_ = EndKind::rule;
  std::uint32_t previous_gap_ = 0, previous_stored_ = 0;
  std::uint64_t since_flush_ = 0;
};

class StreamCodec : private StreamState {
 public:
  // The work of its searches; code_block() fails once that is spent. It must outlive this.
  explicit StreamCodec(SearchWork& work) : work_(work) {}
  // Records the predictor's answers, or takes them from there.
  StreamCodec(SearchWork& work, PredictionRecord& record, bool replays)
      : work_(work), record_(&record), replays_(replays) {}
  // The answers from here on: nobody will ask for them again.
  void record_nothing() { record_ = nullptr; }

  const PlainWindow& window() const { return window_; }
  const Parameters& parameters() const { return parameters_; }
  // Bytes that follow those added before.
  void add_plain(ByteView plain);
  StreamState save() const { return *this; }
  // set_parameters() comes next.
  void restore(StreamState state) {
    static_cast<StreamState&>(*this) = std::move(state);
    predictor_.reset();
    follower_.reset();
  }
  bool is_steady() const { return token_.is_steady(); }
  // For the blocks from here on. Forgets how places were inserted, unless another block rule is all that is
  // new: the same parameters once more are how an opener says that its predictor has to start anew.
  void set_parameters(const Parameters& parameters);
  // The same for these blocks, the next ones, which have nothing but tokens, where a predictor with the
  // parameters would answer with those: they are noted as its answers, in a record that outlives this. Only
  // if is_steady(). The predictor of set_parameters() follows, if it is a greedy one, and is asked again
  // after stop_expecting(); of others, it takes set_parameters() to have one again.
  void expect_tokens(const Parameters& parameters, std::span<const Block> blocks, PredictionRecord& record);
  void stop_expecting();

  // Codes one block that starts at window().position(), and moves that on. `last` says that window() holds
  // the stream's last bytes. False if what was decoded is no block. Of a block with tokens, or an empty one
  // that is not stored, `used` takes the symbols.
  template <class Coder>
  bool code_block(Coder& coder, Block& block, std::uint32_t start_bit, bool last, Frequencies& used);
  template <class Coder>
  std::uint8_t code_padding(Coder& coder, std::uint32_t bits, std::uint8_t padding);

 private:
  bool is_optimal() const { return parameters_.parser == Parser::optimal; }
  template <class Coder>
  bool code_end_kind(Coder& coder, Block& block, bool aligned);
  template <class Coder>
  bool code_tokens(Coder& coder, Block& block, bool last);
  // Up to `limit`; `count` is how many, if the block ends by that.
  template <class Coder, class AnyPredictor>
  bool code_each_token(Coder& coder, AnyPredictor& predictor, Block& block, std::uint32_t limit,
                       std::uint32_t count);
  template <class Coder>
  bool code_stored(Coder& coder, Block& block, std::uint32_t start_bit);
  template <class Coder>
  bool code_irregular(Coder& coder, Block& block);
  template <class Coder>
  bool code_type(Coder& coder, Block& block, const Frequencies& used);
  template <class Coder>
  bool code_type_first(Coder& coder, Block& block);

  SearchWork& work_;
  SearchTables tables_;
  std::unique_ptr<Predictor> follower_, predictor_;
  PredictionRecord* record_ = nullptr;
  bool replays_ = false;
};

template <class Coder>
bool StreamCodec::code_end_kind(Coder& coder, Block& block, bool aligned) {
  auto& chances = end_kind_[static_cast<std::size_t>(previous_end_)][aligned ? 1 : 0];
  std::size_t node = 1;
  for (int bit = 2; bit >= 0; --bit) {
    const bool wanted = ((static_cast<unsigned>(block.end) >> bit) & 1) != 0;
    node = node << 1 | (coder.bit(chances[node], wanted) ? 1U : 0U);
  }
  if (node - 8 >= kEndKinds) return false;
  block.end = previous_end_ = static_cast<EndKind>(node - 8);
  return true;
}

template <class Coder>
std::uint8_t StreamCodec::code_padding(Coder& coder, std::uint32_t bits, std::uint8_t padding) {
  if (bits == 0 || !coder.bit(padded_, padding != 0)) return 0;
  return static_cast<std::uint8_t>(padding_.code(coder, padding));
}

template <class Coder>
bool StreamCodec::code_stored(Coder& coder, Block& block, std::uint32_t start_bit) {
  block.type = BlockType::stored;
  if (block.end == EndKind::stored) {
    if (coder.bit(same_stored_, block.plain_size == previous_stored_))
      block.plain_size = previous_stored_;
    else
      block.plain_size = stored_.code(coder, block.plain_size);
    previous_stored_ = block.plain_size;
  }
  if (block.plain_size > 0xffff || block.plain_size > window_.left()) return false;
  block.padding = code_padding(coder, (16 - start_bit - 3) % 8, block.padding);
  // The encoder did parse these bytes, only its tokens are not known: they were probably as predicted.
  std::uint32_t at = window_.position();
  const std::uint32_t end = at + block.plain_size;
  const std::uint32_t limit = parameters_.knows_block_end() ? end : window_.end();
  while (at < end && !work_.is_spent()) {
    Token token = predictor_->predict(at, limit);
    if (token.length > end - at) token = {};
    predictor_->advance(at, token);
    at += token.length;
  }
  return true;
}

template <class Coder>
bool StreamCodec::code_tokens(Coder& coder, Block& block, bool last) {
  const std::uint32_t start = window_.position();
  std::uint32_t limit = window_.end(), count = 0;
  if (block.end == EndKind::flush) {
    const auto wanted = static_cast<std::uint32_t>(since_flush_ + block.plain_size);
    const auto expected = previous_gap_ - static_cast<std::uint32_t>(since_flush_);
    if (coder.bit(same_gap_, wanted == previous_gap_))
      block.plain_size = expected;
    else
      block.plain_size = gap_.code(coder, block.plain_size);
    if (block.plain_size == 0 || block.plain_size > window_.left()) return false;
    previous_gap_ = static_cast<std::uint32_t>(since_flush_ + block.plain_size);
    limit = start + block.plain_size;
  } else if (block.end == EndKind::input_end) {
    if (!last || window_.left() == 0) return false;
  } else if (is_optimal()) {
    block.plain_size = plain_size_.code(coder, block.plain_size);
    if (block.plain_size == 0 || block.plain_size > window_.left()) return false;
    limit = start + block.plain_size;
  } else if (block.end == EndKind::count) {
    count = count_.code(coder, static_cast<std::uint32_t>(block.tokens.size()));
    if (count == 0 || count > window_.left()) return false;
  } else if (block.end == EndKind::rule) {
    const std::uint32_t most = (1U << parameters_.block_log) - 1;
    if (parameters_.rule == BlockRule::tokens) count = most;
    if (parameters_.rule == BlockRule::bytes) limit = start + std::min(most, window_.left());
  }

  if (is_optimal()) {
    if (!code_type_first(coder, block)) return false;
    if (block.type == BlockType::fixed)
      predictor_->begin_block(start, limit, kFixedLitLen, kFixedDistance);
    else
      predictor_->begin_block(start, limit, block.header.lit_len, block.header.distance);
  }

  // zlib's predictor is compiled into a loop of its own, since two calls for each token are a sixth of what
  // the quick levels take.
  if (auto* const zlib = dynamic_cast<ChainPredictor<ZlibHash>*>(predictor_.get()))
    return code_each_token(coder, *zlib, block, limit, count);
  return code_each_token(coder, *predictor_, block, limit, count);
}

template <class Coder, class AnyPredictor>
bool StreamCodec::code_each_token(Coder& coder, AnyPredictor& predictor, Block& block, std::uint32_t limit,
                                  std::uint32_t count) {
  const std::uint32_t start = window_.position();
  BlockEnd rule(parameters_, window_.at(start), PlainWindow::before(start));
  const bool by_rule = block.end == EndKind::rule && !is_optimal() && parameters_.rule != BlockRule::tokens;
  const bool by_count = count != 0;
  std::uint32_t at = start;
  if constexpr (Coder::kDecodes) block.tokens.reserve(std::min<std::size_t>(window_.left(), 32768));
  for (std::size_t i = 0;;) {
    Token token;
    if constexpr (!Coder::kDecodes) token = block.tokens[i];
    const Token predicted = predictor.predict(at, limit);
    if (!token_.code(coder, predictor, at, predicted, token)) return false;
    if (token.length > limit - at) return false;
    predictor.advance(at, token);
    at += token.length;
    ++i;
    if constexpr (Coder::kDecodes) block.tokens.push_back(token);
    if (by_rule ? rule.after(token) : by_count ? i == count : at == limit) break;
    if (at == limit || coder.failed() || work_.is_spent()) return false;
  }
  block.plain_size = at - start;
  return true;
}

template <class Coder>
bool StreamCodec::code_irregular(Coder& coder, Block& block) {
  if (!coder.bit(any_irregular_, !block.irregular.empty())) return true;
  const std::uint32_t count = irregular_.code(coder, static_cast<std::uint32_t>(block.irregular.size()));
  if (count > block.tokens.size()) return false;
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t wanted = Coder::kDecodes ? 0 : block.irregular[i];
    const std::uint64_t index = std::uint64_t{next} + irregular_.code(coder, wanted - next);
    if (index >= block.tokens.size() || block.tokens[index].length != kMostMatch) return false;
    if constexpr (Coder::kDecodes) block.irregular.push_back(static_cast<std::uint32_t>(index));
    next = static_cast<std::uint32_t>(index) + 1;
  }
  return true;
}

template <class Coder>
bool StreamCodec::code_type(Coder& coder, Block& block, const Frequencies& used) {
  const DynamicHeader predicted = zlib_header(used);
  const bool empty = block.end == EndKind::empty;
  const bool expects_fixed = zlib_prefers_fixed(used, predicted);
  const bool is_fixed =
      coder.bit(other_type_[empty ? 1 : 0], (block.type == BlockType::fixed) != expects_fixed)
          ? !expects_fixed
          : expects_fixed;
  block.type = is_fixed ? BlockType::fixed : BlockType::dynamic;
  return is_fixed || header_.code(coder, block.header, predicted);
}

// Without the tokens, the best guess is the block before.
template <class Coder>
bool StreamCodec::code_type_first(Coder& coder, Block& block) {
  const bool is_fixed = coder.bit(fixed_first_, block.type == BlockType::fixed);
  block.type = is_fixed ? BlockType::fixed : BlockType::dynamic;
  if (is_fixed) return true;
  if (!header_.code(coder, block.header, last_header_)) return false;
  last_header_ = block.header;
  return true;
}

template <class Coder>
bool StreamCodec::code_block(Coder& coder, Block& block, std::uint32_t start_bit, bool last,
                             Frequencies& used) {
  if (!code_end_kind(coder, block, start_bit == 0)) return false;
  block.final = coder.bit(final_[static_cast<std::size_t>(block.end)], block.final);
  const bool stored =
      block.end == EndKind::stored ||
      (block.end == EndKind::empty && coder.bit(empty_stored_[start_bit], block.type == BlockType::stored));
  if (stored) {
    if (!code_stored(coder, block, start_bit)) return false;
  } else {
    if (block.end != EndKind::empty && !code_tokens(coder, block, last)) return false;
    if (!code_irregular(coder, block)) return false;
    used = count_symbols(block, window_.at(window_.position()));
    const bool known = is_optimal() && block.end != EndKind::empty;
    if (!known && !code_type(coder, block, used)) return false;
  }
  window_.advance(block.plain_size);
  since_flush_ += block.plain_size;
  work_.steps += block.plain_size;
  if (block.end == EndKind::flush) {
    predictor_->flushed(window_.position());
    since_flush_ = 0;
  }
  return !coder.failed() && !work_.is_spent();
}

}  // namespace kin::formats::deflate
