#include "lib/engine/sample_survey.h"

#include "lib/base/mutex.h"
#include "lib/base/worker_pool.h"
#include "lib/delta/codec.h"
#include "lib/engine/source_file.h"
#include "lib/similarity/scanner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/stat.h>

namespace kin {
namespace {

constexpr std::size_t kFrontBytes = 8 << 10;
constexpr std::uint32_t kShortBytes = 64 << 10;
constexpr std::size_t kBatchFiles = 64;  // each holds its directory open

using Batch = std::vector<WalkEntry>;

std::array<std::uint8_t, 8> bytes_of(std::uint64_t value) {
  std::array<std::uint8_t, 8> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return out;
}

Key key_of(std::uint64_t seed) {
  Key out{};
  std::ranges::copy(bytes_of(seed), out.begin());
  return out;
}

// One instance per thread.
class Surveyor {
 public:
  Surveyor(const SurveyRequest& request, const Scanner& scanner, const Key& key, const std::stop_token& stop)
      : request_(request),
        scanner_(scanner),
        key_(key),
        stop_(stop),
        codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1)) {}

  Result<void> look_at(const WalkEntry& entry, SampleSurvey& into) {
    KIN_TRY_ASSIGN(const Fd fd, open_for_reading(entry));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", entry.path);
    if (!S_ISREG(info.st_mode)) return Error(ErrorCode::io, printable(entry.path) + " is no longer a file");
    const auto size = static_cast<std::uint64_t>(info.st_size);
    SampleUnit unit;
    unit.file = sample_file_id(entry.tree_path);
    KIN_TRY_ASSIGN(const ByteView head,
                   read(fd.get(), 0, size > kMostWholeBytes ? kHeadBytes : kFrontBytes, entry));
    unit.is_container = find_format(request_.formats, head) != nullptr;
    const bool whole = size <= (unit.is_container ? kMostContainerBytes : kMostWholeBytes);
    SampleSurvey file;
    if (!whole) {
      unit.is_container = false;
      unit.is_stretch = true;
      seen_ = mixed(bytes_of(size));
      KIN_TRY(add_stretches(fd.get(), size, unit, info, entry, file));
    } else if (size > 0) {
      unit.bytes = static_cast<std::uint32_t>(size);
      KIN_TRY(add_unit(fd.get(), unit, entry, file));
    }
    file.files = 1;
    file.bytes = size;
    if (unit.is_stretch) {
      file.large.emplace(seen_, size);
      file.large_bytes = size;
    }
    if (file.units.empty()) file.empty.push_back(unit.file);
    into.add(file);
    return {};
  }

 private:
  Result<ByteView> read(int fd, std::uint64_t at, std::size_t bytes, const WalkEntry& entry) {
    KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(fd, std::span(buffer_).first(bytes), at, entry.path));
    return ByteView(buffer_).first(got);
  }

  std::uint64_t mixed(ByteView bytes) const {
    const Digest digest = keyed_hash(key_, bytes);
    std::uint64_t out;
    std::memcpy(&out, digest.data(), sizeof out);
    return out;
  }

  void see(ByteView bytes, std::uint64_t at) {
    seen_ = mixed(bytes_of(seen_ ^ mixed(bytes) ^ mixed(bytes_of(at))));
  }

  // The part that is left of it.
  double compressed(ByteView bytes) {
    const auto made = codec_->encode({}, bytes);
    if (!made || bytes.empty()) return 1;
    return std::min(1.0, static_cast<double>(made->size()) / static_cast<double>(bytes.size()));
  }

  Result<void> add_unit(int fd, SampleUnit unit, const WalkEntry& entry, SampleSurvey& into) {
    const std::uint64_t begin = unit.stretch * kStretchBytes;
    KIN_TRY_ASSIGN(const ByteView front, read(fd, begin, kFrontBytes, entry));
    const Sketch sketch = scanner_.sketch(front);
    // Content too short for a feature is one itself.
    if (sketch.empty()) unit.features.front() = mixed(front);
    for (std::size_t i = 0; i < std::min(sketch.size(), SampleUnit::kFeatures); ++i)
      unit.features[i] = mixed(bytes_of(sketch[i]));
    double part = compressed(front);
    see(front, begin);
    if (unit.bytes >= kShortBytes) {
      // The front of a large one says little of the rest, which has two more places to speak for it.
      for (const std::uint64_t at : {unit.bytes / 8 * 4, unit.bytes / 8 * 7}) {
        KIN_TRY_ASSIGN(const ByteView further, read(fd, begin + at, kFrontBytes, entry));
        part += compressed(further);
        see(further, begin + at);
      }
      part /= 3;
    }
    unit.expected = static_cast<float>(part * unit.bytes);
    into.units.push_back(unit);
    return {};
  }

  // Those that hold any data.
  Result<void> add_stretches(int fd, std::uint64_t size, SampleUnit unit, const struct stat& info,
                             const WalkEntry& entry, SampleSurvey& into) {
    KIN_TRY_ASSIGN(const bool sparse, has_holes(fd, info, entry.path));
    for (std::uint64_t at = 0; at < size;) {
      if (stop_.stop_requested()) return interrupted();
      const std::uint64_t end = std::min(size, at + kStretchBytes);
      if (sparse) {
        KIN_TRY_ASSIGN(const auto data, next_data(fd, at, size, entry.path));
        if (data.first >= end) {
          // At once, however far that is.
          const std::uint64_t next = data.first < size ? data.first / kStretchBytes * kStretchBytes : size;
          into.hole_bytes += next - at;
          at = next;
          continue;
        }
      }
      unit.stretch = at / kStretchBytes;
      unit.bytes = static_cast<std::uint32_t>(end - at);
      KIN_TRY(add_unit(fd, unit, entry, into));
      at = end;
    }
    return {};
  }

  const SurveyRequest& request_;
  const Scanner& scanner_;
  const Key key_;
  const std::stop_token& stop_;
  const std::unique_ptr<Codec> codec_;
  std::uint64_t seen_ = 0;  // all of a file, in order
  Bytes buffer_ = Bytes(kHeadBytes);
};

}  // namespace

void SampleSurvey::add(const SampleSurvey& other) {
  units.insert(units.end(), other.units.begin(), other.units.end());
  empty.insert(empty.end(), other.empty.begin(), other.empty.end());
  large.insert(other.large.begin(), other.large.end());
  files += other.files;
  bytes += other.bytes;
  hole_bytes += other.hole_bytes;
  large_bytes += other.large_bytes;
}

Result<SampleSurvey> survey_files(const SurveyRequest& request, const std::stop_token& stop) {
  const Key key = key_of(request.seed);
  const Scanner scanner(key);
  Mutex mutex;
  SampleSurvey out;
  WorkerPool pool(request.jobs, 2 * request.jobs);
  const auto look_at = [&](Batch batch) {
    // shared_ptr: a task is copied, and an entry cannot be.
    pool.submit(
        [&, batch = std::make_shared<const Batch>(std::move(batch))]() -> Result<void> {
          Surveyor surveyor(request, scanner, key, stop);
          SampleSurvey seen;
          for (const WalkEntry& entry : *batch) {
            if (stop.stop_requested()) return {};
            const auto looked = surveyor.look_at(entry, seen);
            if (!looked && !stop.stop_requested()) request.on_skipped(entry.path, looked.error());
            request.on_file(entry.path);
          }
          MutexLock lock(mutex);
          out.add(seen);
          return {};
        },
        1);
  };
  Batch batch;
  const auto emit = [&](WalkEntry entry) {
    if (entry.kind == WalkEntry::Kind::file) batch.push_back(std::move(entry));
    if (batch.size() == kBatchFiles) look_at(std::exchange(batch, {}));
    return !stop.stop_requested();
  };
  const auto walked = Walker(request.walk, nullptr, std::nullopt, emit, request.on_skipped).walk();
  if (!batch.empty()) look_at(std::move(batch));
  KIN_TRY(pool.wait());
  KIN_TRY(walked);
  if (stop.stop_requested()) return interrupted();
  return out;
}

}  // namespace kin
