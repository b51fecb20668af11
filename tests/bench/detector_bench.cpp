// How fast each detector reads, on one core and without a disk: detector_bench FILE...
//
// Every file is held in memory; each detector makes the print of all of them, five times, and the fastest
// turn counts. Then each print is looked for among those before it, and added.
#include "lib/similarity/detector.h"
#include "tests/support/memory_key_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace kin {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<void> measure(const DetectorEntry& entry, const std::vector<Bytes>& files, double bytes) {
  const auto detector = entry.make();
  std::vector<Print> prints;
  double fastest = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    prints.clear();
    const double began = seconds_now();
    for (const Bytes& file : files) {
      MemoryContent content(file);
      KIN_TRY_ASSIGN(Print print, detector->print(content, "file"));
      prints.push_back(std::move(print));
    }
    fastest = std::min(fastest, seconds_now() - began);
  }
  KIN_TRY_ASSIGN(const auto index, detector->make_index(testing::MemoryKeyStore::make));
  const double began = seconds_now();
  std::size_t values = 0;
  FindLimits limits;
  limits.most_looked_at = 64;
  for (std::uint32_t i = 0; i < prints.size(); ++i) {
    KIN_TRY(index->find(prints[i], limits));
    KIN_TRY(index->add(i, prints[i]));
    values += prints[i].values.size();
  }
  fmt::print("{:<24} {:>8.0f} MB/s {:>10} values {:>8.3f} s to find and add {:>8.1f} MiB\n", entry.name,
             bytes / 1e6 / fastest, values, seconds_now() - began,
             static_cast<double>(index->bytes()) / (1 << 20));
  return {};
}

int bench(int count, char** arguments) {
  std::vector<Bytes> files;
  double bytes = 0;
  for (int i = 1; i < count; ++i) {
    auto content = read_file(arguments[i], std::uint64_t{1} << 30);
    if (!content) continue;
    bytes += static_cast<double>(content->size());
    files.push_back(*std::move(content));
  }
  fmt::print("{} files, {:.1f} MB\n", files.size(), bytes / 1e6);
  for (const DetectorEntry& entry : all_detectors())
    if (const auto measured = measure(entry, files, bytes); !measured) {
      fmt::print(stderr, "{}: {}\n", entry.name, measured.error().message());
      return 1;
    }
  return 0;
}

}  // namespace
}  // namespace kin

int main(int count, char** arguments) { return kin::bench(count, arguments); }
