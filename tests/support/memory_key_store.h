// A KeyStore in memory, for tests of what needs one.
#pragma once

#include "lib/similarity/key_store.h"

#include <set>
#include <utility>

namespace kin::testing {

class MemoryKeyStore : public KeyStore {
 public:
  Result<void> add(std::uint64_t key, std::uint32_t file) override {
    rows_.emplace(key, file);
    return {};
  }
  Result<std::vector<std::uint32_t>> find(std::uint64_t low, std::uint64_t high,
                                          std::size_t most) const override {
    std::vector<std::uint32_t> out;
    for (auto at = rows_.lower_bound({low, 0}); at != rows_.end() && at->first <= high && out.size() < most;
         ++at)
      out.push_back(at->second);
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
