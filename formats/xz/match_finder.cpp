// The problem: of all places in reach that begin as this one does, find the nearest for each length, without
// looking at all of them.
//
// The idea, which is that of LZMA's encoders since the first: the first two, three and four bytes are hashed.
// For two and three of them, a table has the last place only. Behind the largest table, places with the same
// hash hang together: in a chain, the last one first; or in a binary tree, ordered by the bytes that follow,
// whose root is the last one. Searching a tree puts the new place at its root at the same time, so that
// nothing is searched twice. Links are kept in a ring, one entry for each place in reach.
//
// How far a search goes (depth), which candidates it never sees since another place has taken their entry in
// a table, and that it stops at nice_length, all show in the stream. So does the size of the hash table,
// which follows from that of the dictionary: it cannot be made smaller for short contents. The links can.
//
// What does not show: when positions are renumbered, how memory is laid out, and that entries are fetched
// ahead, without which most of the time goes into waiting for them: on one core liblzma packs a tar of
// documents at 3.7 MB/s, this at 7.
#include "formats/xz/match_finder.h"

#include "formats/checksums.h"
#include "formats/xz/limits.h"

#include <new>

namespace kin::formats::xz {
namespace {

constexpr std::uint32_t kHash2Size = 1U << 10, kHash3Size = 1U << 16;
constexpr std::uint32_t kNowhere = 0;
// A place that is looked at is seldom in a cache.
constexpr std::uint32_t kPlaceSteps = 8;
constexpr std::uint32_t kFarAhead = 12, kNearAhead = 6;
constexpr std::uint32_t kLastPosition = UINT32_MAX;

std::uint32_t main_hash_mask(const Settings& settings) {
  const std::uint32_t bytes = hashed_bytes(settings.finder);
  if (bytes == 2) return 0xffff;
  std::uint32_t mask = (std::bit_ceil(settings.dictionary_bytes) - 1) >> 1 | 0xffff;
  if (mask > 1U << 24) mask = bytes == 3 ? (1U << 24) - 1 : mask >> 1;
  return mask;
}

std::size_t all_hash_entries(const Settings& settings) {
  const std::uint32_t bytes = hashed_bytes(settings.finder);
  return std::size_t{main_hash_mask(settings)} + 1 + (bytes > 2 ? kHash2Size : 0) +
         (bytes > 3 ? kHash3Size : 0);
}

// A block whose content needs more of them is not encoded, so that no address space goes to the rest.
std::size_t link_entries(const Settings& settings) {
  const std::size_t all = (is_tree(settings.finder) ? 2 : 1) * (std::size_t{settings.dictionary_bytes} + 1);
  return std::min<std::size_t>(all, kMostTableBytes / sizeof(std::uint32_t));
}

}  // namespace

std::uint64_t table_bytes(const Settings& settings, std::uint64_t plain_bytes) {
  if (settings.stored) return 0;
  if (settings.dictionary_bytes > kMostDictionary) return UINT64_MAX;
  const std::uint64_t links = std::min<std::uint64_t>(settings.dictionary_bytes, plain_bytes) + 1;
  return sizeof(std::uint32_t) * (all_hash_entries(settings) + (is_tree(settings.finder) ? 2 : 1) * links);
}

MatchFinder::MatchFinder(const Settings& settings, Window& window, std::uint32_t first)
    : window_(window),
      nice_length_(std::max(settings.nice_length, hashed_bytes(settings.finder))),
      depth_(settings.depth),
      cyclic_size_(settings.dictionary_bytes + 1),
      hash_mask_(main_hash_mask(settings)),
      is_tree_(is_tree(settings.finder)),
      hash_(all_hash_entries(settings), LargeTable::Pages::usual),
      links_(link_entries(settings), LargeTable::Pages::large),
      position_(std::max(first, cyclic_size_)) {  // so that what is nowhere is out of reach
  switch (settings.finder) {
    case Finder::chain_3:
      find_ = &MatchFinder::find_with<Finder::chain_3>;
      skip_ = &MatchFinder::skip_with<Finder::chain_3>;
      break;
    case Finder::chain_4:
      find_ = &MatchFinder::find_with<Finder::chain_4>;
      skip_ = &MatchFinder::skip_with<Finder::chain_4>;
      break;
    case Finder::tree_2:
      find_ = &MatchFinder::find_with<Finder::tree_2>;
      skip_ = &MatchFinder::skip_with<Finder::tree_2>;
      break;
    case Finder::tree_3:
      find_ = &MatchFinder::find_with<Finder::tree_3>;
      skip_ = &MatchFinder::skip_with<Finder::tree_3>;
      break;
    case Finder::tree_4:
      find_ = &MatchFinder::find_with<Finder::tree_4>;
      skip_ = &MatchFinder::skip_with<Finder::tree_4>;
      break;
  }
}

void MatchFinder::find(Matches& matches) {
  matches.count = 0;
  matches.longest = 0;
  out_ = &matches;
  (this->*find_)();
  ++ahead_;
  if (matches.count == 0) return;
  const Match& last = matches.all[matches.count - 1];
  matches.longest = last.length;
  if (last.length < nice_length_) return;
  const std::uint8_t* const here = window_.data() - 1;
  const std::uint32_t limit = std::min(window_.ahead() + 1, kLongestMatch);
  matches.longest = common_length(here, here - last.distance - 1, last.length, limit);
}

template <Finder kFinder>
void MatchFinder::find_with() {
  step<kFinder, true>();
}
template <Finder kFinder>
void MatchFinder::skip_with() {
  step<kFinder, false>();
}

// The entries of places that come are asked for early: first that of the hash table, some places later what
// it leads to. It has to be inline: g++ takes a function that does nothing else for one that does nothing.
template <Finder kFinder>
[[gnu::always_inline]] inline void MatchFinder::fetch_ahead(const std::uint8_t* here,
                                                            std::uint32_t left) const {
  if (left < kFarAhead + 4) return;
  const auto entry = [&](std::uint32_t ahead) {
    const std::uint8_t* const there = here + ahead;
    std::uint32_t hash = kCrc32Table[there[0]] ^ there[1] ^ std::uint32_t{there[2]} << 8;
    std::uint32_t first = kHash2Size;
    if constexpr (hashed_bytes(kFinder) == 4) {
      hash ^= kCrc32Table[there[3]] << 5;
      first += kHash3Size;
    }
    return hash_.data() + first + (hash & hash_mask_);
  };
  __builtin_prefetch(entry(kFarAhead));
  const std::uint32_t delta = position_ + kNearAhead - *entry(kNearAhead);
  if (delta >= cyclic_size_ || delta <= kNearAhead) return;
  __builtin_prefetch(here + kNearAhead - delta);
  const std::uint32_t at = cyclic_ + kNearAhead;  // beyond the end now and then, and then it is in vain
  const std::size_t link = at - delta + (delta > at ? cyclic_size_ : 0);
  __builtin_prefetch(links_.data() + (is_tree(kFinder) ? 2 : 1) * link);
}

// One place: looked up in the tables and entered, and with kFind what is found handed out.
template <Finder kFinder, bool kFind>
void MatchFinder::step() {
  constexpr std::uint32_t kHashed = hashed_bytes(kFinder);
  constexpr bool kTree = is_tree(kFinder);
  const std::uint32_t left = window_.ahead();
  if (left < kHashed) {  // at the end of all; such places are not entered
    window_.advance();
    return;
  }
  const std::uint32_t limit = std::min(left, nice_length_);
  const std::uint8_t* const here = window_.data();

  std::uint32_t best = kHashed == 4 ? 1 : kHashed == 3 ? 2 : 1;
  std::uint32_t candidate;
  if constexpr (kHashed == 2) {
    std::uint32_t& entry = hash_[here[0] | std::uint32_t{here[1]} << 8];
    candidate = std::exchange(entry, position_);
  } else {
    fetch_ahead<kFinder>(here, left);
    const std::uint32_t two = kCrc32Table[here[0]] ^ here[1];
    const std::uint32_t three = two ^ std::uint32_t{here[2]} << 8;
    std::uint32_t hash = three;
    std::uint32_t first = kHash2Size;
    std::uint32_t delta = position_ - std::exchange(hash_[two & (kHash2Size - 1)], position_);
    std::uint32_t delta3 = 0;
    if constexpr (kHashed == 4) {
      delta3 = position_ - std::exchange(hash_[kHash2Size + (three & (kHash3Size - 1))], position_);
      hash ^= kCrc32Table[here[3]] << 5;
      first += kHash3Size;
    }
    candidate = std::exchange(hash_[first + (hash & hash_mask_)], position_);
    if constexpr (kFind) {
      // The same first byte and the same hash: these bytes are the same.
      if (delta < cyclic_size_ && *(here - delta) == *here) {
        best = 2;
        add(2, delta);
      }
      if constexpr (kHashed == 4) {
        if (delta != delta3 && delta3 < cyclic_size_ && *(here - delta3) == *here) {
          best = 3;
          delta = delta3;
          add(3, delta);
        }
      }
      if (out_->count > 0) {
        best = common_length(here - delta, here, best, limit);
        out_->all[out_->count - 1].length = best;
        if (best == limit) {
          link(limit, candidate, kTree);
          return next_place();
        }
      }
      if (best < kHashed - 1) best = kHashed - 1;
    }
  }
  if constexpr (kTree) {
    tree<kFind>(limit, candidate, best);
  } else if constexpr (kFind) {
    chain(limit, candidate, best);
  } else {
    links_[cyclic_] = candidate;
  }
  next_place();
}

// Entered, but not searched for matches.
void MatchFinder::link(std::uint32_t limit, std::uint32_t candidate, bool as_tree) {
  if (as_tree)
    tree<false>(limit, candidate, 0);
  else
    links_[cyclic_] = candidate;
}

void MatchFinder::chain(std::uint32_t limit, std::uint32_t candidate, std::uint32_t best) {
  const std::uint8_t* const here = window_.data();
  std::uint32_t* const links = links_.data();
  links[cyclic_] = candidate;
  for (std::uint32_t depth = depth_; depth > 0; --depth) {
    const std::uint32_t delta = position_ - candidate;
    if (delta >= cyclic_size_) break;
    steps_ += kPlaceSteps;
    const std::uint8_t* const there = here - delta;
    candidate = links[cyclic_ - delta + (delta > cyclic_ ? cyclic_size_ : 0)];
    if (there[best] != here[best] || there[0] != here[0]) continue;
    const std::uint32_t length = common_length(there, here, 1, limit);
    steps_ += length / 8;
    if (length <= best) continue;
    best = length;
    add(length, delta);
    if (length == limit) break;
  }
}

// From the root down, where this place becomes the root: what is smaller than it goes to its one side, what
// is larger to the other, and of each side the place where the next goes is kept.
template <bool kFind>
void MatchFinder::tree(std::uint32_t limit, std::uint32_t candidate, std::uint32_t best) {
  const std::uint8_t* const here = window_.data();
  const std::uint32_t position = position_, cyclic = cyclic_, cyclic_size = cyclic_size_;
  std::uint32_t* const links = links_.data();
  std::uint32_t* smaller = links + 2 * std::size_t{cyclic};
  std::uint32_t* larger = smaller + 1;
  std::uint32_t same_smaller = 0, same_larger = 0;
  std::uint32_t depth = depth_;
  for (;; --depth) {
    const std::uint32_t delta = position - candidate;
    if (depth == 0 || delta >= cyclic_size) {
      *smaller = *larger = kNowhere;
      break;
    }
    std::uint32_t* const pair = links + 2 * std::size_t{cyclic - delta + (delta > cyclic ? cyclic_size : 0)};
    const std::uint8_t* const there = here - delta;
    std::uint32_t length = std::min(same_smaller, same_larger);
    if (there[length] == here[length]) {
      length = common_length(there, here, length + 1, limit);
      if (kFind && length > best) {
        best = length;
        add(length, delta);
      }
      if (length == limit) {  // the same as far as anybody looks: takes its place
        *smaller = pair[0];
        *larger = pair[1];
        steps_ += limit / 8;
        break;
      }
    }
    if (there[length] < here[length]) {
      *smaller = candidate;
      smaller = pair + 1;
      candidate = *smaller;
      same_smaller = length;
    } else {
      *larger = candidate;
      larger = pair;
      candidate = *larger;
      same_larger = length;
    }
  }
  steps_ += kPlaceSteps * (1 + depth_ - depth);
}

void MatchFinder::next_place() {
  window_.advance();
  if (++cyclic_ == cyclic_size_) cyclic_ = 0;
  if (++position_ == kLastPosition) renumber();
}

// What is out of reach becomes nowhere.
void MatchFinder::renumber() {
  const std::uint32_t less = kLastPosition - cyclic_size_;
  const auto renumbered = [less](std::uint32_t& position) {
    position = position <= less ? kNowhere : position - less;
  };
  std::for_each_n(hash_.data(), hash_.size(), renumbered);
  std::for_each_n(links_.data(), links_.size(), renumbered);
  position_ -= less;
}

}  // namespace kin::formats::xz
