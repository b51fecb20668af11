#include "lib/sync/item_merge.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace kin::sync {
namespace {

constexpr std::uint8_t kOnlyIfBoth = kTrashed | kDraft;

std::uint8_t merge_flags(const Item* base, std::uint8_t ours, std::uint8_t theirs) {
  if (base == nullptr) return ((ours | theirs) & ~kOnlyIfBoth) | (ours & theirs & kOnlyIfBoth);
  const std::uint8_t changed = (ours ^ base->flags) | (theirs ^ base->flags);
  return static_cast<std::uint8_t>(base->flags ^ changed);
}

std::vector<std::string> merge_words(const Item* base, const std::vector<std::string>& ours,
                                     const std::vector<std::string>& theirs) {
  std::vector<std::string> all;
  std::set_union(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::back_inserter(all));
  if (base == nullptr) return all;
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::binary_search(words.begin(), words.end(), word);
  };
  // One that the base has, and one side no longer has, was taken away.
  std::erase_if(all, [&](const std::string& word) {
    return has(base->words, word) && !(has(ours, word) && has(theirs, word));
  });
  return all;
}

bool same_content(const Item& a, const Item& b) {
  return a.type == b.type && a.object == b.object && a.target == b.target;
}

// Of two contents, the one with the higher rank keeps the name: the same one, whoever merges, so that three
// that merge in turn come to an end. A file beside a directory cannot keep its name.
auto rank(const Item& item) {
  return std::tuple(item.type == ItemType::directory, item.time, item.type, item.target, item.object);
}

Merged merge_live(const Item* base, const Item& ours, const Item& theirs) {
  Merged out;
  if (ours.type != theirs.type || ours.type == ItemType::symlink || ours.type == ItemType::file) {
    if (!same_content(ours, theirs)) {
      if (base != nullptr && same_content(*base, ours)) return {theirs, {}};
      if (base != nullptr && same_content(*base, theirs)) return {ours, {}};
      const bool ours_wins = rank(ours) > rank(theirs);
      return {ours_wins ? ours : theirs, ours_wins ? theirs : ours};
    }
    // Of two modes, the one that permits less.
    const bool theirs_changed = base == nullptr
                                    ? std::pair(theirs.time, ours.mode) > std::pair(ours.time, theirs.mode)
                                    : !same_state(*base, theirs);
    return {theirs_changed ? theirs : ours, {}};
  }
  Item item = ours;
  item.flags = merge_flags(base, ours.flags, theirs.flags);
  item.words = merge_words(base, ours.words, theirs.words);
  if (base == nullptr) item.mode = std::min(ours.mode, theirs.mode);
  if (base != nullptr && base->mode == ours.mode) item.mode = theirs.mode;
  return {item, {}};
}

}  // namespace

Merged merge(const std::optional<ItemState>& base, const ItemState& ours, const ItemState& theirs) {
  const Item* const before = base && *base ? &**base : nullptr;
  if (ours && theirs) return merge_live(before, *ours, *theirs);
  if (!ours && !theirs) return {};
  const Item& live = ours ? *ours : *theirs;
  // Who has never seen it does not know that it was deleted.
  if (before == nullptr) return {live, {}};
  if (live.type == ItemType::directory)
    return {live, {}};  // one that is not needed goes once it is empty on both
  if (live.type != ItemType::message && !same_content(*before, live)) return {live, {}};
  return {};
}

}  // namespace kin::sync
