// A KeyStore in memory, for tests of what needs one.
#pragma once

#include "lib/similarity/key_store.h"

#include <iterator>
#include <set>
#include <utility>

namespace kin::testing {

class MemoryKeyStore : public KeyStore {
 public:
  Result<void> add(std::uint64_t key, std::uint32_t file) override {
    rows_.emplace(key, file);
    return {};
  }
  Result<std::vector<std::uint32_t>> find_nearest(std::uint64_t key, std::uint64_t distance,
                                                  std::size_t most) const override {
    std::vector<std::uint32_t> out;
    auto up = rows_.upper_bound({key, UINT32_MAX});
    auto down = up;  // what is before it is next
    while (out.size() < most) {
      const bool has_below = down != rows_.begin() && key - std::prev(down)->first <= distance;
      const bool has_above = up != rows_.end() && up->first - key <= distance;
      if (!has_below && !has_above) break;
      if (has_below && (!has_above || key - std::prev(down)->first <= up->first - key))
        out.push_back((--down)->second);
      else
        out.push_back((up++)->second);
    }
    return out;
  }
  std::uint64_t bytes() const override { return rows_.size() * 48; }

  static Result<std::unique_ptr<KeyStore>> make() {
    return std::unique_ptr<KeyStore>(std::make_unique<MemoryKeyStore>());
  }

 private:
  std::set<std::pair<std::uint64_t, std::uint32_t>> rows_;
};

}  // namespace kin::testing
