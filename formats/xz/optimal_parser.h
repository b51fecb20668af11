// OptimalParser: chooses symbols by what they cost, over stretches of up to 4,096 bytes. What liblzma calls
// the normal mode. One thread at a time.
#pragma once

#include "formats/xz/symbol_coder.h"

#include <optional>
#include <vector>

namespace kin::formats::xz {

// A stretch never gets longer, nor is any match looked at that would make it so.
inline constexpr std::uint32_t kMostStretch = 1U << 12;

class OptimalParser {
 public:
  // Both must outlive it.
  OptimalParser(MatchFinder& finder, SymbolCoder& coder)
      : finder_(finder), coder_(coder), nodes_(kMostStretch) {}

  // `position` is that of the symbol's first byte.
  Symbol next(std::uint32_t position);
  // What was chosen and is not yet asked for will not be.
  void forget() { at_ = end_ = 0; }

 private:
  // A place in the stretch, and the cheapest known way to it: the last symbol of it; or a literal and that
  // symbol, which is the last distance again; or a symbol before these two.
  struct Node {
    std::uint32_t price;
    std::uint32_t from;  // where the last symbol begins
    std::uint32_t back;
    std::uint32_t from_2, back_2;  // of the symbol before the literal
    std::array<std::uint32_t, kReps> reps;
    State state;
    bool after_literal;  // a literal before the last symbol belongs to the way
    bool after_symbol;   // and a symbol before that
  };
  // Where symbols are tried from.
  struct Place;

  std::optional<Symbol> begin(std::uint32_t position);
  void go_on(std::uint32_t position, std::uint32_t at);
  void arrive(std::uint32_t at);
  bool try_single(const Place& place);
  void try_literal_and_rep(const Place& place);
  std::uint32_t try_reps(const Place& place);
  void try_matches(const Place& place, std::uint32_t first_length);
  void try_more(const Place& place, std::uint32_t back, std::uint32_t distance, std::uint32_t length,
                std::uint32_t price, State state);
  Symbol trace_back(std::uint32_t at);

  std::uint32_t short_rep_price(State state, std::uint32_t position_state) const;
  std::uint32_t rep_kind_price(std::uint32_t rep, State state, std::uint32_t position_state) const;
  void reach(std::uint32_t to) {
    while (last_ < to) nodes_[++last_].price = kInfinitePrice;
  }
  void offer(std::uint32_t to, std::uint32_t price, std::uint32_t from, std::uint32_t back) {
    Node& node = nodes_[to];
    if (price >= node.price) return;
    node.price = price;
    node.from = from;
    node.back = back;
    node.after_literal = false;
  }

  MatchFinder& finder_;
  SymbolCoder& coder_;
  Matches matches_;
  std::vector<Node> nodes_;
  std::uint32_t last_ = 0;          // the furthest node that has a price
  std::uint32_t at_ = 0, end_ = 0;  // of the symbols that were chosen
};

}  // namespace kin::formats::xz
