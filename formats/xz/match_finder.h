// MatchFinder: at each place, where the bytes that follow stood before. It finds what liblzma's finders of
// the same name find, in the same order, and nothing else. One thread at a time.
//
// Memory: a hash table that goes by the dictionary's size, and four or eight bytes for each place in reach,
// which grow with the plain bytes that come.
#pragma once

#include "formats/xz/large_table.h"
#include "formats/xz/lzma.h"
#include "formats/xz/window.h"

#include <array>
#include <utility>

namespace kin::formats::xz {

struct Match {
  std::uint32_t length, distance;
};
// Those of one place: each is longer than the one before.
struct Matches {
  std::uint32_t count = 0;
  std::uint32_t longest = 0;  // the last, and more than nice_length if it goes on
  std::array<Match, kLongestMatch + 1> all;
};

class MatchFinder {
 public:
  // The window must outlive it. `first` is where positions begin, for tests of what happens at 2^32.
  MatchFinder(const Settings& settings, Window& window, std::uint32_t first = 0);

  // Of the window's place, which moves on by one.
  void find(Matches& matches);
  void skip(std::uint32_t count) {
    ahead_ += count;
    while (count-- > 0) (this->*skip_)();
  }

  // Places that were looked at, but are not yet part of a symbol.
  std::uint32_t ahead() const { return ahead_; }
  void used(std::uint32_t length) { ahead_ -= length; }
  std::uint32_t nice_length() const { return nice_length_; }
  const Window& window() const { return window_; }
  // What it took so far, as formats/deflate/search_work.h counts it.
  std::uint64_t steps() const { return steps_; }

 private:
  using Step = void (MatchFinder::*)();

  template <Finder kFinder>
  void find_with();
  template <Finder kFinder>
  void skip_with();
  template <Finder kFinder, bool kFind>
  void step();
  template <Finder kFinder>
  void fetch_ahead(const std::uint8_t* here, std::uint32_t left) const;
  template <bool kFind>
  void tree(std::uint32_t limit, std::uint32_t candidate, std::uint32_t best);
  void chain(std::uint32_t limit, std::uint32_t candidate, std::uint32_t best);
  void link(std::uint32_t limit, std::uint32_t candidate, bool as_tree);
  void next_place();
  void renumber();
  void add(std::uint32_t length, std::uint32_t delta) { out_->all[out_->count++] = {length, delta - 1}; }

  Window& window_;
  const std::uint32_t nice_length_, depth_, cyclic_size_, hash_mask_;
  const bool is_tree_;
  Step find_ = nullptr, skip_ = nullptr;
  LargeTable hash_, links_;
  std::uint32_t position_;    // of the place, as the tables have it; 0 is nowhere
  std::uint32_t cyclic_ = 0;  // of the place in links_
  std::uint32_t ahead_ = 0;
  std::uint64_t steps_ = 0;
  Matches* out_ = nullptr;
};

// What its tables take for so many plain bytes.
std::uint64_t table_bytes(const Settings& settings, std::uint64_t plain_bytes);

}  // namespace kin::formats::xz
