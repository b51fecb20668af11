// How fast content is scanned: scanner_bench
//
// 1 MiB of noise and of text, again and again: its sketch alone, and cut into segments with a sketch of each,
// as large files are. Rows are medians of 5 rounds of a quarter of a second. On x86 cycles are those of the
// time-stamp counter, which runs at the processor's nominal rate, whatever its clock does meanwhile;
// elsewhere they are not told.
#include "lib/similarity/scanner.h"
#include "tests/support/random_bytes.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace kin {
namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kRounds = 5;
constexpr double kRoundSeconds = 0.25;

std::uint64_t cycles() {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#else
  return 0;
#endif
}

struct Speed {
  double gigabytes_per_second = 0, cycles_per_byte = 0;
};

// What a scan gives must count for something, or the compiler leaves it out.
volatile std::uint64_t g_kept = 0;
using Scan = std::function<std::uint64_t(ByteView bytes)>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of the scans of a round the median one: those in which something else had the processor do not count.
Speed one_round(const Scan& scan, ByteView bytes) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> seconds, counts;
  for (const auto begin = Clock::now(); seconds_since(begin) < kRoundSeconds;) {
    const auto start = Clock::now();
    const std::uint64_t start_cycles = cycles();
    g_kept = scan(bytes);
    counts.push_back(static_cast<double>(cycles() - start_cycles));
    seconds.push_back(seconds_since(start));
  }
  const auto size = static_cast<double>(bytes.size());
  return {size / median(seconds) / 1e9, median(counts) / size};
}

void measure(const std::string& content, const std::string& what, const Scan& scan, ByteView bytes) {
  one_round(scan, bytes);  // warms up
  std::vector<double> speeds, costs;
  for (int round = 0; round < kRounds; ++round) {
    const Speed speed = one_round(scan, bytes);
    speeds.push_back(speed.gigabytes_per_second);
    costs.push_back(speed.cycles_per_byte);
  }
  fmt::print("{:>7}  {:>8}  {:>6.2f}  {:>11.2f}\n", content, what, median(speeds), median(costs));
  std::fflush(stdout);
}

std::uint64_t sum_of(const Sketch& sketch) {
  std::uint64_t out = 0;
  for (const Feature feature : sketch) out += feature;
  return out;
}

}  // namespace
}  // namespace kin

int main() {
  using namespace kin;
  const Scanner scanner(Key{1, 2, 3});
  const Scan sketch = [&](ByteView bytes) { return sum_of(scanner.sketch(bytes)); };
  const Scan segments = [&](ByteView bytes) {
    std::uint64_t out = 0;
    while (!bytes.empty()) {
      const Scanner::Segment segment = scanner.segment(bytes);
      out += sum_of(segment.sketch);
      bytes = bytes.subspan(segment.size);
    }
    return out;
  };
  fmt::print("{:>7}  {:>8}  {:>6}  {:>11}\n", "content", "what", "GB/s", "cycles/byte");
  const Bytes noise = testing::random_bytes(1, kBytes), text = testing::text_like(2, kBytes);
  for (const auto& [name, content] : {std::pair("noise", &noise), std::pair("text", &text)}) {
    measure(name, "sketch", sketch, *content);
    measure(name, "segments", segments, *content);
  }
  return 0;
}
