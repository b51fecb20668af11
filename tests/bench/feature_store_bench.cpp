// What the feature index costs per object, by the million: feature_store_bench DIRECTORY OBJECTS
//
// Objects of 16 features each. 80 % are unlike any other; 20 % share each feature with a chance of 3 in 4
// with one of those, chosen evenly from all before. One in 10 also has one of 100 features that are common.
// They come in batches of 128: prefetch, then candidates and add of each; every 100,000 there is a commit.
// Times are of the wall clock, and of all CPUs; what making the objects takes is left out.
#include "store/feature_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace kin::store {
namespace {

constexpr std::uint64_t kFeatures = 16;
constexpr std::uint64_t kBatch = 128;
constexpr std::uint64_t kPerCommit = 100'000;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15 + b * 0xd1342543de82ef95 + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

bool is_similar(std::uint64_t object) { return object > 0 && mix(object, 100) % 5 == 0; }

std::uint64_t relative_of(std::uint64_t object) {
  std::uint64_t out = mix(object, 101) % object;
  while (is_similar(out)) --out;  // object 0 is not
  return out;
}

Sketch sketch_of(std::uint64_t object) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kFeatureBits) - 1;
  Sketch out;
  const std::uint64_t relative = is_similar(object) ? relative_of(object) : object;
  for (std::uint64_t i = 0; i < kFeatures; ++i)
    out.push_back(mix(mix(object, 200 + i) % 4 == 0 ? object : relative, 300 + i) & kMask);
  if (mix(object, 102) % 10 == 0) out[0] = mix(mix(object, 103) % 100, 104) & kMask;
  return out;
}

ObjectId id_of(std::uint64_t object) {
  ObjectId out;
  for (std::size_t i = 0; i < out.bytes.size(); ++i)
    out.bytes[i] = static_cast<std::uint8_t>(mix(object, i / 8) >> i % 8 * 8);
  return out;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Wall time of what is between start() and stop().
class Watch {
 public:
  void start() { started_ = std::chrono::steady_clock::now(); }
  void stop() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  double take() { return std::exchange(seconds_, 0); }

 private:
  std::chrono::steady_clock::time_point started_;
  double seconds_ = 0;
};

void ok(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message());
  std::exit(1);
}

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t out = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) out += entry.file_size();
  return out;
}

int run(const std::string& directory, std::uint64_t objects) {
  auto opened = FeatureIndex::open(directory);
  if (!opened) ok(std::move(opened).error());
  FeatureIndex& index = **opened;
  const std::uint64_t per_row = std::min<std::uint64_t>(objects, 1'000'000);

  fmt::print("{:>10}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}\n", "objects", "prefetch",
             "choose", "add", "commit", "total us", "CPU us", "bytes/obj", "peak MiB");
  Watch prefetching, choosing, adding, committing;
  double all_seconds = 0, all_cpu = 0, cpu = 0, slowest_commit = 0;
  std::uint64_t similar = 0, found = 0, row_start = 0;
  std::vector<Sketch> sketches(kBatch);
  for (std::uint64_t first = 0; first < objects;) {
    const std::uint64_t to_commit = kPerCommit - first % kPerCommit;
    const std::uint64_t count = std::min({kBatch, to_commit, objects - first});
    std::vector<const Sketch*> pointers;
    std::vector<ObjectId> ids;
    for (std::uint64_t i = 0; i < count; ++i) {
      sketches[i] = sketch_of(first + i);
      pointers.push_back(&sketches[i]);
      ids.push_back(id_of(first + i));
    }
    std::vector<std::vector<Candidate>> chosen(count);
    const double cpu_before = cpu_seconds();
    prefetching.start();
    ok(index.prefetch(pointers));
    prefetching.stop();
    // In this order for each object in truth; apart here, since looking at a clock takes as long as an add.
    choosing.start();
    for (std::uint64_t i = 0; i < count; ++i) {
      auto candidates = index.candidates(sketches[i], 4);
      if (!candidates) ok(std::move(candidates).error());
      chosen[i] = *std::move(candidates);
    }
    choosing.stop();
    adding.start();
    for (std::uint64_t i = 0; i < count; ++i) ok(index.add(ids[i], sketches[i]));
    adding.stop();
    const double cpu_now = cpu_seconds();
    cpu += cpu_now - cpu_before;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!is_similar(first + i) || relative_of(first + i) >= first) continue;
      ++similar;
      const ObjectId relative = id_of(relative_of(first + i));
      for (const Candidate& candidate : chosen[i]) found += candidate.id == relative ? 1 : 0;
    }
    first += count;
    if (first % kPerCommit == 0 || first == objects) {
      const double before = cpu_seconds();
      Watch one;
      committing.start();
      one.start();
      index.commit(fmt::format("segment-{}", first));
      one.stop();
      committing.stop();
      slowest_commit = std::max(slowest_commit, one.take());
      cpu += cpu_seconds() - before;
    }
    if (first % per_row == 0 || first == objects) {
      const double us = 1e6 / static_cast<double>(first - std::exchange(row_start, first));
      const double prefetch_time = prefetching.take(), choose_time = choosing.take(),
                   add_time = adding.take(), commit_time = committing.take();
      const double total = prefetch_time + choose_time + add_time + commit_time;
      all_seconds += total;
      all_cpu += cpu;
      fmt::print("{:>10}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>9.1f}  {:>8.1f}\n",
                 first, prefetch_time * us, choose_time * us, add_time * us, commit_time * us, total * us,
                 cpu * us, static_cast<double>(bytes_in(directory)) / static_cast<double>(first), peak_mib());
      std::fflush(stdout);
      cpu = 0;
    }
  }
  const double us = 1e6 / static_cast<double>(objects);
  fmt::print("all: {:.2f} us per object, {:.2f} us of CPU; slowest commit {:.2f} s; peak {:.1f} MiB\n",
             all_seconds * us, all_cpu * us, slowest_commit, peak_mib());
  fmt::print("of {} objects like one before, {:.2f} % found it\n", similar,
             100.0 * static_cast<double>(found) / static_cast<double>(std::max<std::uint64_t>(similar, 1)));
  return 0;
}

}  // namespace
}  // namespace kin::store

int main(int argc, char** argv) {
  const std::uint64_t objects = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (objects == 0) {
    fmt::print(stderr, "usage: feature_store_bench DIRECTORY OBJECTS\n");
    return 2;
  }
  return kin::store::run(argv[1], objects);
}
