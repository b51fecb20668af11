// What the benchmarks of bzip2 and xz have in common: files that are opened and rebuilt, and how long it
// took.
#pragma once

#include "lib/base/file.h"
#include "tests/support/coded_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

namespace kin::testing {

// Of this process alone: others share the machine.
double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

struct MeasuredStream {
  Bytes file, plain, corrections;
  std::size_t encoded_bytes = 0;
  double open_seconds = 0, rebuild_seconds = 0;

  double speed(double seconds) const { return static_cast<double>(plain.size()) / 1e6 / seconds; }
};

// `open` and `rebuild` are as open_with() and rebuild_with() give them.
Result<MeasuredStream> measure_stream(const char* name, const auto& open, const auto& rebuild) {
  MeasuredStream out;
  KIN_TRY_ASSIGN(out.file, read_file(name, std::uint64_t{1} << 31));
  Result<Opened> opened = Opened();
  out.open_seconds = seconds_of([&] { opened = open(out.file); });
  if (!opened) return std::move(opened).error();
  out.plain = std::move(opened->plain);
  out.corrections = std::move(opened->corrections);
  Result<Bytes> back = Bytes();
  out.rebuild_seconds = seconds_of([&] { back = rebuild(out.plain, out.corrections); });
  if (!back) return std::move(back).error();
  if (!equal(ByteView(out.file).first(std::min(out.file.size(), back->size())), *back))
    return Error(ErrorCode::corrupt, "other bytes came back");
  out.encoded_bytes = back->size();
  return out;
}

// Each of the arguments; the exit code.
int for_each_name(int count, char** names, const auto& measure) {
  int failed = 0;
  for (int i = 1; i < count; ++i) {
    const Result<void> done = measure(names[i]);
    if (done) continue;
    fmt::print("{}: {}\n", names[i], done.error().message());
    failed = 1;
  }
  return failed;
}

}  // namespace kin::testing
