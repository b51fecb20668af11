// SearchBudget: how many steps (formats/deflate/search_work.h) the searches for the opening of one container
// may take, with all that is in it. One thread at a time.
//
// A limit for each stream is not enough: a file of 21 KB has room for thousands of streams that keep to
// theirs. And what codings make of a file cannot be the measure, since plain bytes cost the maker of a bomb
// nothing. So it goes by the container's own bytes, and what is in one takes from the budgets of both.
//
// Only opening has a budget. Whatever was opened is rebuilt, however long that takes.
//
// When the opening is asked to stop, nothing is left: so it ends within a piece of a stream, and not only
// where bytes are handed on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <utility>

namespace kin {

// Measured, with the trial of the recipe: a PNG of 25 KB that an optimiser wrote takes 185 million, 30 MB of
// zeros in 29 KB 103, 300 KB of ones and zeros in gzip -9 333, and a document of 876 KB with 65 MB in it 605.
// So ordinary files take a quarter of it or less, nearly all of them a hundredth. What is made to be slow
// takes 1 to 6 ns for a step.
struct SearchLimits {
  std::uint64_t always = std::uint64_t{1} << 29;
  std::uint64_t per_byte = 8192;  // of the container
};

class SearchBudget {
 public:
  // `around`, if given, is that of the container that this one is in, and must outlive it.
  explicit SearchBudget(const SearchLimits& limits = {}, SearchBudget* around = nullptr)
      : limits_(limits), around_(around) {}
  SearchBudget(const SearchLimits& limits, std::stop_token stop) : limits_(limits), stop_(std::move(stop)) {}

  const SearchLimits& limits() const { return limits_; }
  void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }
  void spend(std::uint64_t steps) {
    spent_ += steps;
    if (around_ != nullptr) around_->spend(steps);
  }
  std::uint64_t left() const { return left_for(0); }

 private:
  // What is so many levels further down is stopped earlier, so that the streams that it is in can go on.
  std::uint64_t left_for(std::uint64_t levels) const {
    if (stop_.stop_requested()) return 0;
    constexpr std::uint64_t kShares = 16;
    const std::uint64_t shares = kShares - std::min(kShares - 1, levels);
    const std::uint64_t most = (limits_.always + limits_.per_byte * bytes_) / kShares * shares;
    const std::uint64_t left = most - std::min(most, spent_);
    return around_ == nullptr ? left : std::min(left, around_->left_for(levels + 1));
  }

  SearchLimits limits_;
  SearchBudget* around_ = nullptr;
  std::stop_token stop_;
  std::uint64_t bytes_ = 0, spent_ = 0;
};

}  // namespace kin
