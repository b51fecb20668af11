// The problem: what a symbol costs depends on the symbols before it, and the longest match is seldom the
// best.
//
// The idea, which is that of LZMA's encoders: from the first place on, each place of a stretch is a node with
// the cheapest known way to it. From each node all symbols are tried, and three sequences besides, since a
// literal in the midst of a long match is so common: literal + last distance, match + literal + last
// distance, recent distance + literal + last distance. The stretch ends where nothing reaches further, or
// before a match of nice_length; then the way to that node is what is encoded.
//
// It is not optimal. Prices are those of the model as it was, from tables that are made anew now and then; of
// the ways to a node only one is kept; and some trials are left out where they seldom pay. Each of these
// choices shows in the stream. So they are made as liblzma makes them (5.2.5 to 5.8), down to which
// comparison is by "less" and which by "less or equal".
#include "formats/xz/optimal_parser.h"

namespace kin::formats::xz {

struct OptimalParser::Place {
  std::uint32_t at;        // the node
  std::uint32_t position;  // of its byte
  std::uint32_t position_state;
  std::uint32_t left;  // bytes that may be looked at
  const std::uint8_t* here;
  State state;
  const std::array<std::uint32_t, kReps>& reps;
  std::uint32_t literal_price, match_price, rep_price;  // up to it, with the bits that say which kind follows
  bool same_byte;                                       // as the last distance gives
};

inline std::uint32_t OptimalParser::short_rep_price(State state, std::uint32_t position_state) const {
  const Model& model = coder_.model;
  return zero_price(model.is_other_rep[state]) + zero_price(model.is_long_rep0[state][position_state]);
}

inline std::uint32_t OptimalParser::rep_kind_price(std::uint32_t rep, State state,
                                                   std::uint32_t position_state) const {
  const Model& model = coder_.model;
  if (rep == 0)
    return zero_price(model.is_other_rep[state]) + one_price(model.is_long_rep0[state][position_state]);
  const std::uint32_t other = one_price(model.is_other_rep[state]);
  if (rep == 1) return other + zero_price(model.is_rep2_or_3[state]);
  return other + one_price(model.is_rep2_or_3[state]) + bit_price(model.is_rep3[state], rep - 2);
}

Symbol OptimalParser::next(std::uint32_t position) {
  if (at_ != end_) {
    const Node& node = nodes_[at_];
    const Symbol out{node.back, node.from - at_};
    at_ = node.from;
    return out;
  }
  if (finder_.ahead() == 0) coder_.distance_prices.update(coder_.model);
  if (const auto only = begin(position)) return *only;
  std::uint32_t at = 1;
  for (; at < last_; ++at) {
    finder_.find(matches_);
    if (matches_.longest >= finder_.nice_length()) break;
    go_on(position + at, at);
  }
  return trace_back(at);
}

// The first place: all symbols from there, or the one that is taken without further thought.
std::optional<Symbol> OptimalParser::begin(std::uint32_t position) {
  if (finder_.ahead() == 0) finder_.find(matches_);
  const Window& window = finder_.window();
  const std::uint32_t left = std::min(window.ahead() + 1, kLongestMatch);
  if (left < 2) return Symbol{};

  const std::uint8_t* const here = window.data() - 1;
  std::array<std::uint32_t, kReps> rep_lengths{};
  std::uint32_t best_rep = 0;
  for (std::uint32_t i = 0; i < kReps; ++i) {
    const std::uint8_t* const there = here - coder_.reps[i] - 1;
    if (!same_two(here, there)) continue;
    rep_lengths[i] = common_length(here, there, 2, left);
    if (rep_lengths[i] > rep_lengths[best_rep]) best_rep = i;
  }
  const std::uint32_t best_rep_length = rep_lengths[best_rep];
  const std::uint32_t nice = finder_.nice_length();
  if (best_rep_length >= nice) {
    finder_.skip(best_rep_length - 1);
    return Symbol{best_rep, best_rep_length};
  }
  const std::uint32_t longest = matches_.longest;
  if (longest >= nice) {
    finder_.skip(longest - 1);
    return Symbol{matches_.all[matches_.count - 1].distance + kReps, longest};
  }
  const std::uint8_t byte = *here, match_byte = *(here - coder_.reps[0] - 1);
  if (longest < 2 && byte != match_byte && best_rep_length < 2) return Symbol{};

  const Model& model = coder_.model;
  const State state = coder_.state;
  const std::uint32_t position_state = position & coder_.position_mask;
  const Probability is_match = model.is_match[state][position_state];
  const std::uint32_t match_price = one_price(is_match);
  const std::uint32_t rep_price = match_price + one_price(model.is_rep[state]);
  nodes_[1].price =
      zero_price(is_match) + coder_.literal_price(position, here[-1], after_literal(state), match_byte, byte);
  nodes_[1].from = 0;
  nodes_[1].back = Symbol::kLiteral;
  nodes_[1].after_literal = false;
  if (byte == match_byte) offer(1, rep_price + short_rep_price(state, position_state), 0, 0);
  last_ = std::max(longest, best_rep_length);
  if (last_ < 2) return Symbol{nodes_[1].back, 1};

  nodes_[0].state = state;
  nodes_[0].reps = coder_.reps;
  for (std::uint32_t length = 2; length <= last_; ++length) nodes_[length].price = kInfinitePrice;
  for (std::uint32_t i = 0; i < kReps; ++i) {
    if (rep_lengths[i] < 2) continue;
    const std::uint32_t price = rep_price + rep_kind_price(i, state, position_state);
    for (std::uint32_t length = rep_lengths[i]; length >= 2; --length)
      offer(length, price + coder_.rep_prices.of(length, position_state), 0, i);
  }
  std::uint32_t length = rep_lengths[0] >= 2 ? rep_lengths[0] + 1 : 2;
  if (length > longest) return std::nullopt;
  const std::uint32_t normal_price = match_price + zero_price(model.is_rep[state]);
  const Match* match = matches_.all.data();
  while (length > match->length) ++match;
  for (const Match* const end = matches_.all.data() + matches_.count; match != end; ++match)
    for (; length <= match->length; ++length)
      offer(length,
            normal_price + coder_.distance_prices.of(match->distance, length) +
                coder_.match_prices.of(length, position_state),
            0, match->distance + kReps);
  return std::nullopt;
}

// State and recent distances of a node, from the way to it.
void OptimalParser::arrive(std::uint32_t at) {
  Node& node = nodes_[at];
  std::uint32_t from = node.from;
  State state;
  if (node.after_literal) {
    --from;
    if (node.after_symbol) {
      state = nodes_[node.from_2].state;
      state = node.back_2 < kReps ? state_after_rep(state) : state_after_match(state);
    } else {
      state = nodes_[from].state;
    }
    state = state_after_literal(state);
  } else {
    state = nodes_[from].state;
  }
  if (from == at - 1) {
    node.state = node.back == 0 ? state_after_short_rep(state) : state_after_literal(state);
    node.reps = nodes_[from].reps;
    return;
  }
  std::uint32_t back = node.back;
  if (node.after_literal && node.after_symbol) {
    from = node.from_2;
    back = node.back_2;
    node.state = state_after_rep(state);
  } else {
    node.state = back < kReps ? state_after_rep(state) : state_after_match(state);
  }
  const auto& before = nodes_[from].reps;
  if (back >= kReps) {
    node.reps = {back - kReps, before[0], before[1], before[2]};
    return;
  }
  node.reps = before;
  for (std::uint32_t i = back; i > 0; --i) node.reps[i] = before[i - 1];
  node.reps[0] = before[back];
}

// Another place of the stretch, whose matches were found: all symbols from there.
void OptimalParser::go_on(std::uint32_t position, std::uint32_t at) {
  arrive(at);
  const Node& node = nodes_[at];
  const Model& model = coder_.model;
  const Window& window = finder_.window();
  const std::uint8_t* const here = window.data() - 1;
  const std::uint32_t position_state = position & coder_.position_mask;
  const Probability is_match = model.is_match[node.state][position_state];
  const std::uint8_t match_byte = *(here - node.reps[0] - 1);
  const std::uint32_t match_price = node.price + one_price(is_match);
  const Place place{
      .at = at,
      .position = position,
      .position_state = position_state,
      .left = std::min(window.ahead() + 1, kMostStretch - 1 - at),
      .here = here,
      .state = node.state,
      .reps = node.reps,
      .literal_price = node.price + zero_price(is_match) +
                       coder_.literal_price(position, here[-1], after_literal(node.state), match_byte, *here),
      .match_price = match_price,
      .rep_price = match_price + one_price(model.is_rep[node.state]),
      .same_byte = match_byte == *here,
  };
  const bool next_by_one = try_single(place);
  if (place.left < 2) return;
  if (!next_by_one && !place.same_byte) try_literal_and_rep(place);
  const std::uint32_t first_length = try_reps(place);
  try_matches(place, first_length);
}

// A literal, or one byte by the last distance. Whether one of them is now the way to the next node.
bool OptimalParser::try_single(const Place& place) {
  bool taken = false;
  Node& next = nodes_[place.at + 1];
  if (place.literal_price < next.price) {
    offer(place.at + 1, place.literal_price, place.at, Symbol::kLiteral);
    taken = true;
  }
  if (!place.same_byte || (next.from < place.at && next.back == 0)) return taken;
  const std::uint32_t price = place.rep_price + short_rep_price(place.state, place.position_state);
  if (price > next.price) return taken;  // and not if they are equal
  next.price = price;
  next.from = place.at;
  next.back = 0;
  next.after_literal = false;
  return true;
}

void OptimalParser::try_literal_and_rep(const Place& place) {
  const std::uint32_t limit = std::min(place.left, finder_.nice_length() + 1);
  const std::uint32_t length = common_length(place.here, place.here - place.reps[0] - 1, 1, limit) - 1;
  if (length < 2) return;
  const State state = state_after_literal(place.state);
  const std::uint32_t position_state = (place.position + 1) & coder_.position_mask;
  const std::uint32_t price = place.literal_price + one_price(coder_.model.is_match[state][position_state]) +
                              one_price(coder_.model.is_rep[state]) +
                              coder_.rep_prices.of(length, position_state) +
                              rep_kind_price(0, state, position_state);
  const std::uint32_t to = place.at + 1 + length;
  reach(to);
  Node& node = nodes_[to];
  if (price >= node.price) return;
  offer(to, price, place.at + 1, 0);
  node.after_literal = true;
  node.after_symbol = false;
}

// The recent distances. Gives the first length that is worth trying with matches.
std::uint32_t OptimalParser::try_reps(const Place& place) {
  const std::uint32_t limit = std::min(place.left, finder_.nice_length());
  std::uint32_t first_length = 2;
  for (std::uint32_t i = 0; i < kReps; ++i) {
    const std::uint8_t* const there = place.here - place.reps[i] - 1;
    if (!same_two(place.here, there)) continue;
    const std::uint32_t length = common_length(place.here, there, 2, limit);
    reach(place.at + length);
    const std::uint32_t price = place.rep_price + rep_kind_price(i, place.state, place.position_state);
    for (std::uint32_t shorter = length; shorter >= 2; --shorter)
      offer(place.at + shorter, price + coder_.rep_prices.of(shorter, place.position_state), place.at, i);
    if (i == 0) first_length = length + 1;
    try_more(place, i, place.reps[i], length, price + coder_.rep_prices.of(length, place.position_state),
             state_after_rep(place.state));
  }
  return first_length;
}

void OptimalParser::try_matches(const Place& place, std::uint32_t first_length) {
  const std::uint32_t limit = std::min(place.left, finder_.nice_length());
  std::uint32_t longest = matches_.longest;
  if (longest > limit) {
    longest = limit;
    matches_.count = 0;
    while (matches_.all[matches_.count].length < longest) ++matches_.count;
    matches_.all[matches_.count++].length = longest;
  }
  if (longest < first_length) return;
  reach(place.at + longest);
  const std::uint32_t price = place.match_price + zero_price(coder_.model.is_rep[place.state]);
  const State state = state_after_match(place.state);
  const Match* match = matches_.all.data();
  while (first_length > match->length) ++match;
  std::uint32_t length = first_length;
  for (const Match* const end = matches_.all.data() + matches_.count; match != end; ++match) {
    std::uint32_t total = 0;
    for (; length <= match->length; ++length) {
      total = price + coder_.distance_prices.of(match->distance, length) +
              coder_.match_prices.of(length, place.position_state);
      offer(place.at + length, total, place.at, match->distance + kReps);
    }
    try_more(place, match->distance + kReps, match->distance, match->length, total, state);
  }
}

// Behind a match or a recent distance, a literal, and then the same distance again.
void OptimalParser::try_more(const Place& place, std::uint32_t back, std::uint32_t distance,
                             std::uint32_t length, std::uint32_t price, State state) {
  const std::uint8_t* const there = place.here - distance - 1;
  const std::uint32_t limit = std::min(place.left, length + 1 + finder_.nice_length());
  if (length + 1 >= limit) return;
  const std::uint32_t more = common_length(place.here, there, length + 1, limit) - (length + 1);
  if (more < 2) return;
  const Model& model = coder_.model;
  std::uint32_t position_state = (place.position + length) & coder_.position_mask;
  price += zero_price(model.is_match[state][position_state]) +
           coder_.literal_price(place.position + length, place.here[length - 1], false, there[length],
                                place.here[length]);
  state = state_after_literal(state);
  position_state = (place.position + length + 1) & coder_.position_mask;
  price += one_price(model.is_match[state][position_state]) + one_price(model.is_rep[state]) +
           coder_.rep_prices.of(more, position_state) + rep_kind_price(0, state, position_state);
  const std::uint32_t to = place.at + length + 1 + more;
  reach(to);
  Node& node = nodes_[to];
  if (price >= node.price) return;
  offer(to, price, place.at + length + 1, 0);
  node.after_literal = true;
  node.after_symbol = true;
  node.from_2 = place.at;
  node.back_2 = back;
}

// The way to a node, turned round: each node on it then has the symbol that begins there, and where that
// ends.
Symbol OptimalParser::trace_back(std::uint32_t at) {
  end_ = at;
  std::uint32_t from = nodes_[at].from, back = nodes_[at].back;
  while (at != 0) {
    const Node& node = nodes_[at];
    if (node.after_literal) {
      Node& literal = nodes_[from];
      literal.back = Symbol::kLiteral;
      literal.after_literal = false;
      literal.from = from - 1;
      if (node.after_symbol) {
        Node& first = nodes_[from - 1];
        first.after_literal = false;
        first.from = node.from_2;
        first.back = node.back_2;
      }
    }
    Node& previous = nodes_[from];
    const std::uint32_t to = std::exchange(at, from);
    from = std::exchange(previous.from, to);
    back = std::exchange(previous.back, back);
  }
  at_ = nodes_[0].from;
  return {nodes_[0].back, nodes_[0].from};
}

}  // namespace kin::formats::xz
