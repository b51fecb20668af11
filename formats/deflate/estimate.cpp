// No encoder says what it is, but few parse alike. So the known ones are run against the first tokens, all at
// once and in rounds: those that predict much worse than the best leave the race after 1024, 8192 and 32768
// tokens, and the first that predicts all of them ends it. Computing the chain depth of each match instead
// would tell more about unknown encoders; the known ones are nearly all there are, and an unknown one still
// gets whichever predicts it best.
#include "formats/deflate/estimate.h"

#include "formats/deflate/block_end.h"
#include "formats/deflate/huffman.h"
#include "formats/deflate/long_chains.h"
#include "formats/deflate/predictor.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace kin::formats::deflate {
namespace {

constexpr std::array<std::size_t, 4> kRounds = {1024, 8192, 32768, 98304};
constexpr std::size_t kGuessTokens = 1024;
constexpr std::uint64_t kStepsOfTrial = 4096;  // to make and forget tables

// One encoder in the race.
class Trial {
 public:
  Trial(const EstimateInput& input, const Parameters& parameters, std::unique_ptr<SearchTables> tables,
        SearchWork& work)
      : input_(input),
        parameters_(parameters),
        tables_(std::move(tables)),
        work_(work),
        predictor_(Predictor::make(parameters, input.window.position(), *tables_, work)),
        at_(input.window.position()) {
    work_.steps += kStepsOfTrial + std::min(at_ - kFirstPosition, kMostDistance);
    predictor_->set_bytes(input.window.bytes(), 0);
    if (at_ > kFirstPosition) predictor_->restart(at_);
  }

  const Parameters& parameters() const { return parameters_; }
  std::size_t wrong() const { return wrong_; }
  std::size_t seen() const { return seen_; }
  bool at_end() const { return block_ == input_.blocks.size(); }
  bool predicts_all() const { return at_end() && wrong_ == 0 && !skipped_; }

  // Until so many tokens are seen in all, or more than `most_wrong` of them were not as predicted.
  void run(std::size_t tokens, std::size_t most_wrong) {
    const std::uint32_t from = at_;
    run_blocks(tokens, most_wrong);
    work_.steps += at_ - from;
  }

  // Once it is at the end or out of the race; run() must not be called again unless at_end().
  std::unique_ptr<SearchTables> take_tables() {
    predictor_.reset();
    tables_->forget(input_.window.end());
    return std::move(tables_);
  }

 private:
  std::uint32_t block_start() const { return at_ - into_block_; }

  void run_blocks(std::size_t tokens, std::size_t most_wrong) {
    while (block_ < input_.blocks.size() && seen_ < tokens && wrong_ <= most_wrong && !work_.is_spent()) {
      const Block& block = input_.blocks[block_];
      const bool flushed = block.flushed && parameters_.rule != BlockRule::rsyncable;
      const bool ends = flushed || parameters_.knows_block_end();
      const std::uint32_t end = ends ? block_start() + block.plain_size : input_.window.end();
      if (block.type == BlockType::stored) skip(block.plain_size, end);
      if (token_ == 0 && parameters_.parser == Parser::optimal) begin_block(block);
      for (; token_ < block.tokens.size() && seen_ < tokens && wrong_ <= most_wrong && !work_.is_spent();
           ++token_) {
        const Token token = block.tokens[token_];
        if (predictor_->predict(at_, end) != token) ++wrong_;
        predictor_->advance(at_, token);
        at_ += token.length;
        into_block_ += token.length;
        ++seen_;
      }
      if (token_ < block.tokens.size()) return;
      if (flushed) predictor_->flushed(at_);
      ++block_;
      token_ = 0;
      into_block_ = 0;
    }
  }

  void begin_block(const Block& block) {
    const std::uint32_t end = at_ + block.plain_size;
    if (block.type == BlockType::fixed) predictor_->begin_block(at_, end, kFixedLitLen, kFixedDistance);
    if (block.type == BlockType::dynamic)
      predictor_->begin_block(at_, end, block.header.lit_len, block.header.distance);
  }

  void skip(std::uint32_t size, std::uint32_t limit) {
    if (size > 0) skipped_ = true;  // a flush leaves an empty one
    for (const std::uint32_t end = at_ + size; at_ < end && !work_.is_spent();) {
      Token token = predictor_->predict(at_, limit);
      if (token.length > end - at_) token = {};
      predictor_->advance(at_, token);
      at_ += token.length;
    }
  }

  const EstimateInput& input_;
  Parameters parameters_;
  std::unique_ptr<SearchTables> tables_;
  SearchWork& work_;
  std::unique_ptr<Predictor> predictor_;
  std::uint32_t at_;
  std::size_t block_ = 0, token_ = 0, seen_ = 0, wrong_ = 0;
  std::uint32_t into_block_ = 0;
  bool skipped_ = false;  // bytes whose tokens are not known
};

// What the tokens tell without a trial.
struct Traits {
  std::uint32_t longest_distance = 0;
  std::uint32_t shortest_match = kMostMatch;
  std::size_t few_bytes = 0;  // matches of up to 16
  bool matches = false, only_runs = true, flushes = false;
  std::uint64_t plain = 0;
};

Traits traits_of(const EstimateInput& input) {
  Traits out;
  for (const Block& block : input.blocks) {
    out.plain += block.plain_size;
    if (block.flushed) out.flushes = true;
    for (const Token token : block.tokens) {
      if (token.is_literal()) continue;
      out.matches = true;
      if (token.distance != 1) out.only_runs = false;
      out.longest_distance = std::max<std::uint32_t>(out.longest_distance, token.distance);
      out.shortest_match = std::min<std::uint32_t>(out.shortest_match, token.length);
      if (token.length <= 16) ++out.few_bytes;
    }
  }
  return out;
}

// Without a match of up to 5 it may be zlib's Z_FILTERED, which libpng asks for; with many that are little
// longer, it hardly is anything else.
bool may_be_filtered(const Traits& traits) { return traits.shortest_match > 5; }
bool is_filtered(const Traits& traits) { return may_be_filtered(traits) && traits.few_bytes >= 32; }

void add_zlib_levels(std::vector<Parameters>& out, const Parameters& base, const Traits& traits) {
  for (const int level : {6, 9, 1, 5, 4, 3, 2, 7, 8}) {
    Parameters row = zlib_level(level);
    row.hash = base.hash;
    if (base.hash == HashKind::crc32c_3 && level < 6) row.hash = HashKind::crc32c_4;
    row.hash_bits = base.hash_bits;
    row.window_bits = base.window_bits;
    row.filtered = base.filtered && level > 3;
    if (base.filtered && level <= 3) continue;
    out.push_back(row);
    if (traits.flushes && level <= 3) {
      row.flush = FlushHistory::reinsert;
      out.push_back(row);
    }
    if (traits.flushes) {
      row.flush = FlushHistory::clear;
      out.push_back(row);
    }
  }
}

// Microsoft Office: zlib's parsers at levels of its own, always with the memory level 7.
void add_office(std::vector<Parameters>& out, const Traits& traits) {
  for (const int number : {10, 11}) {
    Parameters row = preset(number);
    out.push_back(row);
    if (!traits.flushes) continue;
    row.flush = FlushHistory::clear;
    out.push_back(row);
  }
}

// Encoders of which we know little: the longest match at the shortest distance is what most want.
void add_others(std::vector<Parameters>& out) {
  Parameters other;
  other.zlib_window = false;
  other.skip_far_threes = false;
  other.hash = HashKind::multiplied_3;
  other.hash_bits = 16;
  other.good = 258;
  other.nice = 258;
  other.chain = 1024;
  other.lazy = 258;
  out.push_back(other);
  other.skip_far_threes = true;
  out.push_back(other);
  other.hash = HashKind::multiplied_4;
  out.push_back(other);
  other.skip_far_threes = false;
  out.push_back(other);
  other.hash = HashKind::multiplied_3;
  other.parser = Parser::greedy;
  other.lazy = 0;
  out.push_back(other);
  other.hash = HashKind::multiplied_4;
  out.push_back(other);
  other.chain = 4;
  out.push_back(other);
  // About what libdeflate does at its levels 2 to 7.
  struct Search {
    std::uint16_t chain, nice;
    bool lazy;
  };
  for (const Search search : {Search{6, 10, false}, Search{12, 14, false}, Search{16, 30, false},
                              Search{16, 30, true}, Search{35, 65, true}, Search{100, 130, true}}) {
    other.chain = search.chain;
    other.nice = search.nice;
    other.parser = search.lazy ? Parser::lazy : Parser::greedy;
    other.lazy = search.lazy ? 258 : 0;
    for (const HashKind hash : {HashKind::multiplied_4, HashKind::multiplied_3}) {
      other.hash = hash;
      out.push_back(other);
    }
  }
  Parameters fast;
  fast.parser = Parser::fast;
  fast.hash = HashKind::multiplied_4;
  fast.hash_bits = 14;
  out.push_back(fast);
  // Go has zlib's table, but takes no match of three.
  for (const int level : {6, 9, 5, 4, 7, 8, 2, 3}) {
    Parameters row = zlib_level(level);
    row.hash = HashKind::multiplied_4;
    row.hash_bits = 17;
    row.zlib_window = false;
    row.skip_far_threes = true;
    out.push_back(row);
    row.skip_far_threes = false;  // libdeflate is not so different
    out.push_back(row);
  }
}

std::vector<Parameters> candidates(const EstimateInput& input, const Parameters& rule) {
  Traits traits = traits_of(input);
  if (rule.rule == BlockRule::rsyncable) traits.flushes = false;
  std::vector<Parameters> out;
  Parameters base;
  if (!traits.matches) {
    base.parser = Parser::literals;
    return {base};
  }
  if (traits.only_runs) {
    base.parser = Parser::runs;
    out.push_back(base);
    base.parser = Parser::lazy;
  }
  if (traits.longest_distance <= kMostDistance - 262) {
    // A token buffer of 2^14 comes with a hash of 15 bits; that of GNU gzip, of 2^15, too.
    std::vector<std::uint8_t> hash_bits = {15, 16};
    if (rule.rule == BlockRule::tokens && rule.block_log + 1 != 15)
      hash_bits = {static_cast<std::uint8_t>(rule.block_log + 1), 15};
    if (rule.rule == BlockRule::gzip || rule.rule == BlockRule::rsyncable) hash_bits = {15};
    if (rule.rule == BlockRule::tokens && rule.block_log == 14) hash_bits = {15};
    std::uint8_t window_bits = 15;
    while (window_bits > 9 && (1U << (window_bits - 1)) >= traits.longest_distance + 262) --window_bits;
    const auto add_filtered = [&] {
      base.hash_bits = hash_bits.front();
      base.filtered = true;
      add_zlib_levels(out, base, traits);
      base.filtered = false;
    };
    if (is_filtered(traits)) add_filtered();
    for (const std::uint8_t bits : hash_bits) {
      base.hash_bits = bits;
      add_zlib_levels(out, base, traits);
      // It takes many distances without a long one to make a small window probable.
      if (window_bits < 15 && traits.plain > std::uint64_t{4} << window_bits) {
        base.window_bits = window_bits;
        add_zlib_levels(out, base, traits);
        base.window_bits = 15;
      }
    }
    add_office(out, traits);
    base.hash = HashKind::crc32c_3;
    base.hash_bits = std::max<std::uint8_t>(15, hash_bits.front());
    add_zlib_levels(out, base, traits);
    base.hash = HashKind::chromium_4;
    add_zlib_levels(out, base, traits);
    base.hash = HashKind::zlib;
    if (may_be_filtered(traits) && !is_filtered(traits)) add_filtered();
  }
  add_others(out);
  return out;
}

// How many of the blocks that a rule could explain it does.
std::size_t explained(const EstimateInput& input, const Parameters& parameters) {
  std::size_t out = 0;
  std::uint32_t start = input.window.position();
  for (const Block& block : input.blocks) {
    if (end_kind(block, parameters, input.window, start) == EndKind::rule) ++out;
    start += block.plain_size;
  }
  return out;
}

// How many blocks end where only a rule can say why.
std::size_t explicable(const EstimateInput& input) {
  return static_cast<std::size_t>(
      std::count_if(input.blocks.begin(), input.blocks.end(), [](const Block& block) {
        return block.type != BlockType::stored && !block.tokens.empty() && !block.final;
      }));
}

}  // namespace

bool only_tokens(const EstimateInput& input) {
  return std::none_of(input.blocks.begin(), input.blocks.end(), [](const Block& block) {
    return block.type == BlockType::stored && block.plain_size > 0;
  });
}

EndKind end_kind(const Block& block, const Parameters& parameters, const PlainWindow& window,
                 std::uint32_t start) {
  if (block.type == BlockType::stored) return block.plain_size == 0 ? EndKind::empty : EndKind::stored;
  if (block.tokens.empty()) return EndKind::empty;
  if (block.final) return EndKind::input_end;
  // What gzip does for rsync looks like a flush, but its parser is not told.
  const bool flushed = block.flushed && parameters.rule != BlockRule::rsyncable;
  if (!flushed && parameters.rule != BlockRule::none) {
    BlockEnd rule(parameters, window.at(start), PlainWindow::before(start));
    std::size_t at = 0;
    while (at < block.tokens.size() && !rule.after(block.tokens[at])) ++at;
    if (at + 1 == block.tokens.size()) return EndKind::rule;
  }
  return block.flushed ? EndKind::flush : EndKind::count;
}

Parameters with_block_rule(const EstimateInput& input, Parameters parameters) {
  if (parameters.parser == Parser::optimal) return parameters;
  std::size_t most = parameters.rule == BlockRule::none ? 0 : explained(input, parameters);
  const bool flushes =
      std::any_of(input.blocks.begin(), input.blocks.end(), [](const Block& block) { return block.flushed; });
  // As nearly always, from a stream's second piece on.
  if (parameters.rule != BlockRule::none && !flushes && most == explicable(input)) return parameters;
  std::vector<std::uint8_t> sizes;
  for (const Block& block : input.blocks)
    for (std::uint8_t log = 7; log <= 17; ++log)
      if (block.tokens.size() + 1 == std::size_t{1} << log && !std::count(sizes.begin(), sizes.end(), log))
        sizes.push_back(log);
  Parameters out = parameters;
  const auto consider = [&](BlockRule rule, std::uint8_t log) {
    parameters.rule = rule;
    parameters.block_log = log;
    const std::size_t count = explained(input, parameters);
    if (count <= most) return;
    most = count;
    out = parameters;
  };
  for (const std::uint8_t log : sizes) consider(BlockRule::tokens, log);
  consider(BlockRule::gzip, 15);
  if (parameters.parser == Parser::fast) consider(BlockRule::bytes, 16);
  if (flushes) consider(BlockRule::rsyncable, 15);
  if (out.rule == BlockRule::none) {
    out.rule = BlockRule::tokens;  // zlib's, as good a guess as any
    out.block_log = 14;
  }
  return out;
}

Estimate estimate(const EstimateInput& input, const std::optional<Parameters>& expected, bool may_guess,
                  SearchWork& work) {
  auto tables = std::make_unique<SearchTables>(input.window.left());
  if (expected) {
    Trial trial(input, *expected, std::move(tables), work);
    trial.run(may_guess ? kGuessTokens : kRounds.back(), 0);
    if (trial.wrong() == 0)
      return {with_block_rule(input, *expected), trial.predicts_all() || (may_guess && only_tokens(input)),
              true};
    tables = trial.take_tables();
  }
  std::vector<std::unique_ptr<Trial>> trials;
  std::size_t best = SIZE_MAX / 4;
  // One at a time, so that most leave their tables to the next.
  const Parameters rule = with_block_rule(input, Parameters{});
  for (Parameters& parameters : candidates(input, rule)) {
    if (work.is_spent()) return {rule};
    parameters.rule = rule.rule;
    if (!tables) tables = std::make_unique<SearchTables>(input.window.left());
    auto trial = std::make_unique<Trial>(input, parameters, std::move(tables), work);
    trial->run(kRounds.front(), best + best / 4 + 4);
    const bool leaves = trial->wrong() > best + best / 4 + 4;
    if (trial->wrong() == 0) {
      // None can be better. Most streams are short, and many encoders agree on those.
      trial->run(kRounds.back(), 0);
      if (trial->wrong() == 0) {
        Parameters exact = parameters;
        exact.rule = BlockRule::none;
        return {with_block_rule(input, exact), trial->predicts_all(), true};
      }
    }
    if (leaves || trial->at_end()) tables = trial->take_tables();
    if (leaves) continue;
    best = std::min(best, trial->wrong());
    trials.push_back(std::move(trial));
  }
  for (const std::size_t round : kRounds) {
    if (trials.size() == 1) break;
    best = SIZE_MAX / 4;
    for (auto& trial : trials) {
      trial->run(round, best + best / 4 + 4);
      best = std::min(best, trial->wrong());
    }
    // Later ones ran with a better limit, so the first may have to go too.
    std::erase_if(trials, [&](const auto& trial) { return trial->wrong() > best + best / 4 + 4; });
    if (trials.front()->at_end()) break;
  }
  const auto winner = std::min_element(trials.begin(), trials.end(),
                                       [](const auto& a, const auto& b) { return a->wrong() < b->wrong(); });
  Parameters out = (*winner)->parameters();
  out.rule = BlockRule::none;
  // Nothing fits well, so it may be one that looks for the cheapest way, which takes long to try.
  if ((*winner)->wrong() > (*winner)->seen() / 20) {
    Parameters optimal;
    optimal.parser = Parser::optimal;
    optimal.chain = 128;
    Trial trial(input, optimal, std::make_unique<SearchTables>(input.window.left()), work);
    trial.run(std::min((*winner)->seen(), kRounds[2]), SIZE_MAX);
    if (trial.wrong() * (*winner)->seen() < (*winner)->wrong() * trial.seen()) return {optimal};
  }
  return {with_block_rule(input, out)};
}

}  // namespace kin::formats::deflate
