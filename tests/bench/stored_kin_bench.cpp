// How long kin similar takes to find kin in a repository's feature store: stored_kin_bench DIRECTORY OBJECTS
//
// As many sketches of 16 features are stored; one in five shares three quarters of them with an earlier one.
// Then, 201 times: the store is opened, as the command opens it, and asked for the kin of a sketch of which
// 12 features are stored. The median and the longest of the turns are told.
#include "store/feature_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

namespace kin::store {
namespace {

std::uint64_t spread(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15 + b * 0xd1342543de82ef95 + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Sketch sketch_of(std::uint64_t object) {
  Sketch out;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const bool inherited = object % 5 == 4 && i < 12;
    out.push_back(spread(inherited ? object - 4 : object, i) & ((std::uint64_t{1} << kFeatureBits) - 1));
  }
  return out;
}

ObjectId id_of(std::uint64_t object) {
  ObjectId out;
  for (std::size_t i = 0; i < out.bytes.size(); ++i)
    out.bytes[i] = static_cast<std::uint8_t>(spread(object, 100 + i / 8) >> i % 8 * 8);
  return out;
}

Result<void> fill(const std::string& directory, std::uint64_t objects) {
  KIN_TRY_ASSIGN(const auto index, FeatureIndex::open(directory));
  for (std::uint64_t object = 0; object < objects; ++object) {
    KIN_TRY(index->add(id_of(object), sketch_of(object)));
    if ((object + 1) % 100'000 == 0) index->commit("segment" + std::to_string(object));
  }
  index->commit("last");
  return {};
}

Result<double> ask(const std::string& directory, std::uint64_t object) {
  const auto began = std::chrono::steady_clock::now();
  KIN_TRY_ASSIGN(const auto index, FeatureIndex::open(directory));
  Sketch sketch = sketch_of(object);
  for (std::size_t i = 12; i < 16; ++i) sketch[i] ^= 1;
  const Sketch* const pointer = &sketch;
  KIN_TRY(index->prefetch({&pointer, 1}));
  KIN_TRY_ASSIGN(const auto candidates, index->candidates(sketch, 10));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  if (candidates.empty() || candidates.front().matches < 12)
    return Error(ErrorCode::corrupt, "the kin that is there was not found");
  return taken.count();
}

int bench(const std::string& directory, std::uint64_t objects) {
  if (const auto filled = fill(directory, objects); !filled) {
    fmt::print(stderr, "{}\n", filled.error().message());
    return 1;
  }
  std::vector<double> times;
  for (std::uint64_t turn = 0; turn < 201; ++turn) {
    const auto taken = ask(directory, spread(turn, 7) % objects);
    if (!taken) {
      fmt::print(stderr, "{}\n", taken.error().message());
      return 1;
    }
    times.push_back(*taken);
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:>10}  {:>10}  {:>10}\n", "objects", "median ms", "longest ms");
  fmt::print("{:>10}  {:>10.2f}  {:>10.2f}\n", objects, 1000 * times[times.size() / 2], 1000 * times.back());
  return 0;
}

}  // namespace
}  // namespace kin::store

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return kin::store::bench(arguments[1], std::strtoull(arguments[2], nullptr, 10));
}
