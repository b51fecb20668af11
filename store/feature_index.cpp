#include "store/feature_index.h"

#include "lib/base/file.h"
#include "store/cache_directory.h"
#include "store/feature_runs.h"
#include "store/feature_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <unistd.h>
#include <utility>

namespace kin::store {
namespace {

// Part of the cache's path: a kin that lays it out otherwise counts up, and never meets an older cache.
constexpr std::string_view kFeaturesLayout = "features-1";

constexpr std::size_t kIdBytes = sizeof(Digest);

// What a match of a feature is worth: 1 / (1 + log2(1 + count)), times 360360, which all of 1 to 14 divide.
std::uint64_t weight_of(std::uint32_t count) {
  return 360360 / static_cast<std::uint64_t>(std::bit_width(count + 1));
}
static_assert(std::bit_width(Postings::kMostCommon + 1) <= 14);

std::vector<FeatureKey> keys_of(const Sketch& sketch) {
  std::vector<FeatureKey> out;
  out.reserve(sketch.size());
  for (const Feature feature : sketch) out.push_back(key_of(feature));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

struct Match {
  Ordinal ordinal = 0;
  unsigned features = 0;
  std::uint64_t weight = 0;
};

bool is_better(const Match& a, const Match& b) {
  if (a.features != b.features) return a.features > b.features;
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.ordinal > b.ordinal;
}

// One per object, from one per object and feature.
void join(std::vector<Match>& matches) {
  std::sort(matches.begin(), matches.end(),
            [](const Match& a, const Match& b) { return a.ordinal < b.ordinal; });
  std::size_t kept = 0;
  for (const Match& match : matches) {
    if (kept > 0 && matches[kept - 1].ordinal == match.ordinal) {
      matches[kept - 1].features += match.features;
      matches[kept - 1].weight += match.weight;
    } else {
      matches[kept++] = match;
    }
  }
  matches.resize(kept);
}

}  // namespace

struct FeatureIndex::State {
  State(std::string where, const FeatureIndexLimits& limits, OnLost told, bool is_temporary)
      : directory(std::move(where)),
        temporary(is_temporary),
        on_lost(std::move(told)),
        settings{limits.filter_bytes},
        table(limits.memory_bytes / 8 * 7),
        most_new_ids(std::max<std::size_t>(1, limits.memory_bytes / 8 / kIdBytes)) {}
  ~State() {
    runs.reset();
    if (temporary) remove_temporary_cache(directory);
  }

  std::string directory;
  bool temporary;
  OnLost on_lost;  // null once it is told
  FeatureRuns::Settings settings;
  Fd lock;
  std::unique_ptr<FeatureRuns> runs;  // none: in memory alone

  // The ids of objects by their numbers: those in runs have 32 bytes each in a file, those that are not
  // written yet are here. No checksums: a wrong id is the id of no object.
  Fd id_file;
  std::vector<ObjectId> new_ids;

  FeatureTable table;
  std::size_t most_new_ids;
  // Something that is to be committed was lost.
  bool incomplete = false;

  // What the runs know of the features of the last prefetch(), by keys that ascend.
  std::vector<FeatureKey> fetched_keys;
  std::vector<Postings> fetched;

  std::string runs_directory() const { return directory + "/runs"; }
  std::string id_path() const { return directory + "/ids"; }

  Result<void> open_files() {
    if (directory.empty()) return Error(ErrorCode::io, "no directory for the feature cache");
    KIN_TRY_ASSIGN(runs, FeatureRuns::open(runs_directory(), settings));
    id_file = Fd(::open(id_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!id_file && errno == EISDIR) return Error(ErrorCode::corrupt, "feature cache is damaged");
    if (!id_file) return errno_error("cannot open", id_path());
    const off_t size = ::lseek(id_file.get(), 0, SEEK_END);
    if (size < 0) return errno_error("cannot read", id_path());
    if (static_cast<std::uint64_t>(size) / kIdBytes < runs->objects())
      return Error(ErrorCode::corrupt, "feature cache is damaged");
    return {};
  }

  void forget_all() {
    table.clear();
    new_ids.clear();
    fetched_keys.clear();
    fetched.clear();
  }

  void go_on_in_memory() {
    runs.reset();
    id_file = Fd();
    forget_all();
  }

  // Empties it, whatever is wrong with it.
  Result<void> start_over() {
    go_on_in_memory();
    std::error_code ignored;
    if (!directory.empty()) {
      // It may have been removed, and be another's by now.
      if (!is_there(lock, fmt::format("{}{}", directory, kCacheLockName)))
        return Error(ErrorCode::io, "the feature cache was taken away");
      std::filesystem::remove_all(runs_directory(), ignored);
      std::filesystem::remove_all(id_path(), ignored);
    }
    return open_files();
  }

  void forgive(Result<void> result) {
    if (result) return;
    incomplete = true;
    if (result.error().code() == ErrorCode::corrupt) result = start_over();
    if (result) return;
    go_on_in_memory();
    if (on_lost) std::exchange(on_lost, nullptr)(result.error());
  }

  Ordinal stored_objects() const { return runs ? runs->objects() : 0; }
  Ordinal objects() const { return stored_objects() + static_cast<Ordinal>(new_ids.size()); }

  Result<ObjectId> id_of(Ordinal ordinal) {
    ObjectId out;
    if (ordinal >= objects()) return Error(ErrorCode::corrupt, "feature cache is damaged");
    if (ordinal >= stored_objects()) return new_ids[ordinal - stored_objects()];
    KIN_TRY_ASSIGN(const std::size_t size,
                   read_up_to_at(id_file.get(), out.bytes, std::uint64_t{ordinal} * kIdBytes, id_path()));
    if (size != kIdBytes) return Error(ErrorCode::corrupt, "feature cache is damaged");
    return out;
  }

  // What is in memory becomes a run. `segment` may be empty.
  Result<void> spill(const std::string& segment) {
    if (!runs) {
      forget_all();
      return {};
    }
    // Ids first: a number without postings is harmless, the reverse is not.
    static_assert(sizeof(ObjectId) == kIdBytes);
    const ByteView ids(reinterpret_cast<const std::uint8_t*>(new_ids.data()), new_ids.size() * kIdBytes);
    KIN_TRY(write_all_at(id_file.get(), ids, std::uint64_t{runs->objects()} * kIdBytes, id_path()));
    KIN_TRY(runs->add(table, objects(), segment));
    // What was fetched stays complete.
    for (std::size_t i = 0; i < fetched_keys.size(); ++i) {
      Postings newer = table.find(fetched_keys[i]);
      newer.append_older(fetched[i]);
      fetched[i] = newer;
    }
    table.clear();
    new_ids.clear();
    return runs->merge_if_due();
  }

  Result<void> read(std::span<const FeatureKey> keys, std::span<Postings> into) {
    return runs ? runs->read(keys, into) : Result<void>();
  }

  Result<void> fetch(std::vector<FeatureKey> keys) {
    fetched_keys = std::move(keys);
    fetched.assign(fetched_keys.size(), Postings());
    return read(fetched_keys, fetched);
  }

  // Of all features in the sketch; keys that were not fetched are read now.
  Result<std::vector<Postings>> postings_of(const std::vector<FeatureKey>& keys) {
    std::vector<Postings> out(keys.size());
    std::vector<FeatureKey> missing_keys;
    std::vector<std::size_t> missing;
    for (const FeatureKey key : keys) table.touch(key);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      out[i] = table.find(keys[i]);
      const auto at = std::lower_bound(fetched_keys.begin(), fetched_keys.end(), keys[i]);
      if (at != fetched_keys.end() && *at == keys[i]) {
        out[i].append_older(fetched[static_cast<std::size_t>(at - fetched_keys.begin())]);
      } else {
        missing_keys.push_back(keys[i]);
        missing.push_back(i);
      }
    }
    if (missing.empty()) return out;
    std::vector<Postings> stored(missing.size());
    KIN_TRY(read(missing_keys, stored));
    for (std::size_t i = 0; i < missing.size(); ++i) out[missing[i]].append_older(stored[i]);
    return out;
  }

  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) {
    KIN_TRY_ASSIGN(const std::vector<Postings> known, postings_of(keys_of(sketch)));
    std::vector<Match> matches;
    for (const Postings& postings : known)
      for (std::uint32_t i = 0; i < postings.size; ++i)
        matches.push_back({postings.newest_first[i], 1, weight_of(postings.count)});
    join(matches);
    std::sort(matches.begin(), matches.end(), is_better);
    std::vector<Candidate> out;
    for (const Match& match : matches) {
      if (out.size() == most) break;
      KIN_TRY_ASSIGN(const ObjectId id, id_of(match.ordinal));
      // An object that was added twice is one candidate.
      if (std::none_of(out.begin(), out.end(), [&](const Candidate& other) { return other.id == id; }))
        out.push_back({id, match.features});
    }
    return out;
  }
};

FeatureIndex::FeatureIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
FeatureIndex::~FeatureIndex() = default;

Result<std::unique_ptr<FeatureIndex>> FeatureIndex::open(const std::string& directory,
                                                         const FeatureIndexLimits& limits, OnLost on_lost) {
  auto state = std::make_unique<State>(fmt::format("{}/{}", directory, kFeaturesLayout), limits,
                                       std::move(on_lost), false);
  KIN_TRY_ASSIGN(state->lock, lock_cache(state->directory));
  if (auto opened = state->open_files(); !opened) {
    // Any other failure may pass, and what is there may have taken hours to make.
    if (opened.error().code() != ErrorCode::corrupt) return std::move(opened).error();
    KIN_TRY(state->start_over());
  }
  return std::unique_ptr<FeatureIndex>(new FeatureIndex(std::move(state)));
}

std::unique_ptr<FeatureIndex> FeatureIndex::open_temporary(const std::string& parent,
                                                           const FeatureIndexLimits& limits, OnLost on_lost) {
  TemporaryCache made;
  if (!parent.empty())
    if (auto there = make_temporary_cache(parent)) made = *std::move(there);
  const bool in_memory = made.directory.empty();
  auto state = std::make_unique<State>(std::move(made.directory), limits, std::move(on_lost), !in_memory);
  state->lock = std::move(made.lock);
  if (!state->open_files()) state->go_on_in_memory();
  return std::unique_ptr<FeatureIndex>(new FeatureIndex(std::move(state)));
}

Result<void> FeatureIndex::prefetch(std::span<const Sketch* const> sketches) {
  std::vector<FeatureKey> keys;
  for (const Sketch* sketch : sketches)
    for (const Feature feature : *sketch) keys.push_back(key_of(feature));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  state_->forgive(state_->fetch(std::move(keys)));
  return {};
}

Result<std::vector<Candidate>> FeatureIndex::candidates(const Sketch& sketch, std::size_t most) {
  auto found = state_->candidates(sketch, most);
  if (found) return found;
  state_->forgive(std::move(found).error());
  return std::vector<Candidate>();
}

Result<void> FeatureIndex::add(const ObjectId& id, const Sketch& sketch) {
  if (state_->objects() == std::numeric_limits<Ordinal>::max())
    return {};  // of no use to anyone, but no error
  if (state_->new_ids.size() >= state_->most_new_ids) state_->forgive(state_->spill(""));
  const Ordinal ordinal = state_->objects();
  state_->new_ids.push_back(id);
  const std::vector<FeatureKey> keys = keys_of(sketch);
  for (const FeatureKey key : keys) state_->table.touch(key);
  for (const FeatureKey key : keys) {
    if (state_->table.add(key, ordinal)) continue;
    state_->forgive(state_->spill(""));
    // All numbers are void if that made the index forget; then the rest of the features go, too.
    if (ordinal >= state_->objects()) return {};
    state_->table.add(key, ordinal);
  }
  return {};
}

void FeatureIndex::commit(const std::string& segment) {
  if (!state_->runs) return;
  state_->forgive(state_->spill(state_->incomplete ? "" : segment));
  state_->incomplete = false;
}

std::set<std::string> FeatureIndex::segments() const {
  return state_->runs ? state_->runs->segments() : std::set<std::string>();
}

void FeatureIndex::clear() {
  if (state_->directory.empty()) {
    state_->forget_all();
  } else {
    state_->forgive(state_->start_over());
  }
  state_->incomplete = false;
}

const std::string& FeatureIndex::directory() const { return state_->directory; }

}  // namespace kin::store
