#include "store/feature_table.h"

namespace kin::store {
namespace {

constexpr std::size_t kSmallest = 1024;
constexpr std::size_t kBeyondEnd = 256;

// Above this, clusters grow long: at 0.85 an insertion moves some 20 slots, which lie side by side.
bool is_full(std::size_t used, std::size_t capacity) { return used * 20 >= capacity * 17; }

}  // namespace

FeatureTable::FeatureTable(std::size_t limit_bytes) : limit_bytes_(limit_bytes) { allocate(kSmallest); }

void FeatureTable::allocate(std::size_t capacity) {
  capacity_ = capacity;
  slots_ = std::vector<Slot>(capacity + kBeyondEnd);
}

void FeatureTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot());
  older_.clear();
  used_ = 0;
}

bool FeatureTable::grow() {
  const std::size_t limit = limit_bytes_ / 4 * 3 / sizeof(Slot);
  // Twice as many, unless that leaves a last step which is not worth it.
  const std::size_t wanted = capacity_ * 4 > limit ? std::max<std::size_t>(limit, kSmallest) : capacity_ * 2;
  if (wanted <= capacity_) return false;
  const std::vector<Slot> before = std::move(slots_);
  allocate(wanted);
  std::size_t next = 0;
  for (const Slot& slot : before) {
    if (slot.tagged == 0) continue;
    next = std::max(next, home(slot.key()));
    if (next == slots_.size()) slots_.emplace_back();
    slots_[next++] = slot;
  }
  return true;
}

Postings FeatureTable::postings_of(const Slot& slot) const {
  Postings out;
  out.count = slot.count();
  if (out.is_stopped()) return out;
  out.size = std::min(out.count, Postings::kMost);
  out.newest_first[0] = slot.newest;
  for (std::uint32_t i = 1; i < out.size; ++i) out.newest_first[i] = older_[slot.older - 1][i - 1];
  return out;
}

void FeatureTable::bump(Slot& slot, Ordinal ordinal) {
  const std::uint32_t count = slot.count();
  if (count > Postings::kMostCommon) return;
  ++slot.tagged;
  if (slot.older == 0) {
    older_.emplace_back();
    slot.older = static_cast<std::uint32_t>(older_.size());
  }
  Older& older = older_[slot.older - 1];
  std::copy_backward(older.begin(), older.end() - 1, older.end());
  older[0] = slot.newest;
  slot.newest = ordinal;
}

bool FeatureTable::add(FeatureKey key, Ordinal ordinal) {
  std::size_t at = home(key);
  while (at < slots_.size() && slots_[at].tagged != 0 && slots_[at].key() < key) ++at;
  if (at < slots_.size() && slots_[at].tagged != 0 && slots_[at].key() == key) {
    if (slots_[at].older == 0 && (older_.size() + 1) * sizeof(Older) > limit_bytes_ / 4) return false;
    bump(slots_[at], ordinal);
    return true;
  }
  std::size_t end = at;
  while (end < slots_.size() && slots_[end].tagged != 0) ++end;
  if (is_full(used_, capacity_) || end == slots_.size()) return grow() && add(key, ordinal);
  std::copy_backward(slots_.begin() + at, slots_.begin() + end, slots_.begin() + end + 1);
  slots_[at] = {key << 16 | 1, ordinal, 0};
  ++used_;
  return true;
}

Postings FeatureTable::find(FeatureKey key) const {
  for (std::size_t at = home(key); at < slots_.size() && slots_[at].tagged != 0 && slots_[at].key() <= key;
       ++at)
    if (slots_[at].key() == key) return postings_of(slots_[at]);
  return {};
}

}  // namespace kin::store
