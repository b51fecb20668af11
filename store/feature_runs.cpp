// The problem: 16 features for each of millions of objects, spread evenly over 40 bits. One RocksDB key per
// feature costs 0.4 us to write, and as much again each time it is compacted, which is several times; a
// lookup that misses costs 0.9 us per sorted run. That is 50 us per object, most of it spent on keys of 5
// bytes that are handled one by one.
//
// The idea: sorted runs in files of their own (feature_run.h), whose pages of some 200 features are read and
// merged whole, and a RocksDB that is their catalogue. A page is read only from a run whose filter says that
// the feature is there. Pages in RocksDB, under (run, page), were tried: its index, twenty steps of binary
// search in cold memory, and its way through MultiGet doubled what a lookup costs.
//
// Runs are merged when four or more of the newest are of about one size (sizes go by powers of 4), so a
// feature is written some 4 times on its way to 10 million objects, and there are about 3 runs per size.
//
// The catalogue: "run/" number -> its shape; "segment/" name -> nothing; "objects" -> their number. A file
// that it does not list is what an interrupted process left, and is removed by who opens it for writing: by
// open(), if the last who wrote left something in its log, or else with the first change.
#include "store/feature_runs.h"

#include "lib/base/wire.h"
#include "store/cache_directory.h"
#include "store/feature_run.h"
#include "store/reading_env.h"

#include <fmt/core.h>
#include <rocksdb/db.h>

#include <bit>
#include <filesystem>
#include <optional>

namespace kin::store {
namespace {

constexpr std::string_view kRunPrefix = "run/";
constexpr std::string_view kTakenPrefix = "segment/";
const std::string kObjectsKey = "objects";
constexpr std::string_view kCatalogue = "catalogue";

constexpr std::size_t kMergeWidth = 4;

Result<void> check(const rocksdb::Status& status) {
  if (status.ok()) return {};
  const ErrorCode code = status.IsCorruption() ? ErrorCode::corrupt
                         : status.IsNoSpace()  ? ErrorCode::no_space
                                               : ErrorCode::io;
  return Error(code, "feature cache: " + status.ToString());
}

// A database of which something is missing, or that is not ours, is of as little use as a damaged one.
Result<void> check_opened(const rocksdb::Status& status) {
  if (status.IsPathNotFound() || status.IsInvalidArgument() || status.IsNotSupported())
    return feature_cache_damaged();
  return check(status);
}

rocksdb::Options options() {
  rocksdb::Options out;
  out.create_if_missing = true;
  out.info_log_level = rocksdb::FATAL_LEVEL;
  out.keep_log_file_num = 1;
  // As for the index of objects: the default starts 15 threads, and aborts where it cannot have them.
  out.max_file_opening_threads = 1;
  out.max_background_jobs = 2;
  out.write_buffer_size = 1 << 20;
  out.compression = rocksdb::kNoCompression;
  return out;
}

// Its key in the catalogue, after the prefix, and in the file's name.
std::string digits(std::uint32_t number) { return fmt::format("{:010}", number); }

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (text.size() != 10 || out >= ~std::uint32_t{0}) return std::nullopt;
  return static_cast<std::uint32_t>(out);
}

// A false answer costs as much in a small run as in a large one, a bit per key does not.
std::uint64_t filter_bits_per_key(std::uint64_t keys) {
  return keys <= 4'000'000 ? 15 : keys <= 16'000'000 ? 12 : keys <= 64'000'000 ? 9 : 7;
}
constexpr std::uint64_t kLeastFilterBits = 4;  // one false answer in seven; below, a filter is of little use

// Runs of one level differ by less than a factor of 4.
unsigned level_of(std::uint64_t keys) { return static_cast<unsigned>(std::bit_width(keys >> 16) + 1) / 2; }

// The first of those to be merged, which are all that follow it; the number of runs if none are.
std::size_t merge_from(std::vector<std::uint64_t> sizes) {
  std::size_t from = sizes.size();
  for (unsigned level = 0; level <= level_of(~std::uint64_t{0}); ++level) {
    std::size_t start = sizes.size();
    std::size_t of_level = 0;
    for (; start > 0 && level_of(sizes[start - 1]) <= level; --start)
      of_level += level_of(sizes[start - 1]) == level ? 1 : 0;
    if (of_level < kMergeWidth) continue;
    std::uint64_t sum = 0;
    for (std::size_t i = start; i < sizes.size(); ++i) sum += sizes[i];
    sizes.resize(start);
    sizes.push_back(sum);  // perhaps one of enough of the next size
    from = start;
  }
  return from;
}

}  // namespace

struct FeatureRuns::State {
  struct Run {
    std::uint32_t number = 0;
    FeatureRun file;
  };

  std::string directory;
  Settings settings;
  std::unique_ptr<rocksdb::DB> catalogue;
  bool read_only = false;  // the catalogue, until something is added
  std::vector<Run> runs;   // oldest first
  std::uint32_t next_run = 1;
  Ordinal objects = 0;
  std::set<std::string> segments;

  std::string path_of(std::uint32_t number) const {
    return fmt::format("{}/run-{}", directory, digits(number));
  }

  Result<void> open_catalogue(bool may_be_read_only) {
    const std::string path = fmt::format("{}/{}", directory, kCatalogue);
    rocksdb::DB* opened = nullptr;
    if (may_be_read_only && is_quickly_read(path)) {
      rocksdb::Options asking = options();
      asking.env = reading_env();
      asking.create_if_missing = false;
      // The shorter call, without families, first tries a kind of database that starts a thread.
      std::vector<rocksdb::ColumnFamilyHandle*> families;
      read_only = rocksdb::DB::OpenForReadOnly(asking, path, {{rocksdb::kDefaultColumnFamilyName, asking}},
                                               &families, &opened)
                      .ok();
      for (rocksdb::ColumnFamilyHandle* family : families) delete family;
    }
    // A database that cannot be read is looked at once more: that tells more of why.
    if (!read_only) KIN_TRY(check_opened(rocksdb::DB::Open(options(), path, &opened)));
    catalogue.reset(opened);
    return {};
  }

  // Before the first change. What was read stays true: the lock on the index is held all the time.
  Result<void> begin_writing() {
    if (!read_only) return {};
    read_only = false;
    catalogue.reset();
    KIN_TRY(open_catalogue(false));
    remove_unlisted_runs();
    return {};
  }

  Result<void> load() {
    const std::unique_ptr<rocksdb::Iterator> at(catalogue->NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const std::string_view key(at->key().data(), at->key().size());
      if (key.starts_with(kTakenPrefix)) segments.emplace(key.substr(kTakenPrefix.size()));
      if (key.starts_with(kRunPrefix)) {
        const auto number = number_of(key.substr(kRunPrefix.size()));
        const auto shape = FeatureRunShape::decode(as_bytes(at->value().ToStringView()));
        if (!number || !shape) return feature_cache_damaged();
        auto file = FeatureRun::open(path_of(*number), *shape);
        if (!file && file.error().code() == ErrorCode::not_found) return feature_cache_damaged();
        if (!file) return std::move(file).error();
        runs.push_back({*number, *std::move(file)});
        next_run = *number + 1;
      }
      if (key == kObjectsKey) {
        WireReader in(as_bytes(at->value().ToStringView()));
        objects = in.u32();
        KIN_TRY(in.finish("feature cache"));
      }
    }
    return check(at->status());
  }

  void remove_unlisted_runs() {
    std::error_code ignored;
    std::set<std::string> listed = {fmt::format("{}/{}", directory, kCatalogue)};
    for (const Run& run : runs) listed.insert(run.file.path());
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
      if (!listed.contains(entry.path().string())) std::filesystem::remove_all(entry.path(), ignored);
  }

  std::uint64_t filter_bytes_for(std::uint64_t keys, std::size_t runs_that_stay) const {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < runs_that_stay; ++i) others += runs[i].file.shape().filter_bytes();
    const std::uint64_t room =
        settings.filter_limit_bytes > others ? settings.filter_limit_bytes - others : 0;
    const std::uint64_t wanted = keys * filter_bits_per_key(keys) / 8;
    return std::min(wanted, std::max(room, keys * kLeastFilterBits / 8));
  }

  // The file is there; with this it counts, and those from `first` on no longer do.
  Result<void> replace(std::size_t first, const FeatureRunShape& shape, rocksdb::WriteBatch& batch) {
    KIN_TRY_ASSIGN(FeatureRun file, FeatureRun::open(path_of(next_run), shape));
    batch.Put(fmt::format("{}{}", kRunPrefix, digits(next_run)), as_text(shape.encode()));
    for (std::size_t i = first; i < runs.size(); ++i)
      batch.Delete(fmt::format("{}{}", kRunPrefix, digits(runs[i].number)));
    KIN_TRY(check(catalogue->Write(rocksdb::WriteOptions(), &batch)));
    std::error_code ignored;
    for (std::size_t i = first; i < runs.size(); ++i) std::filesystem::remove(runs[i].file.path(), ignored);
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(first), runs.end());
    runs.push_back({next_run++, std::move(file)});
    return {};
  }
};

FeatureRuns::FeatureRuns(std::unique_ptr<State> state) : state_(std::move(state)) {}
FeatureRuns::~FeatureRuns() = default;

Result<std::unique_ptr<FeatureRuns>> FeatureRuns::open(const std::string& directory,
                                                       const Settings& settings) {
  auto state = std::make_unique<State>();
  state->directory = directory;
  state->settings = settings;
  KIN_TRY(make_directories(directory, 0700));
  KIN_TRY(state->open_catalogue(true));
  KIN_TRY(state->load());
  if (!state->read_only) state->remove_unlisted_runs();
  return std::unique_ptr<FeatureRuns>(new FeatureRuns(std::move(state)));
}

Result<void> FeatureRuns::read(std::span<const FeatureKey> keys, std::span<Postings> into) {
  for (std::size_t i = state_->runs.size(); i-- > 0;) KIN_TRY(state_->runs[i].file.read(keys, into));
  return {};
}

Result<void> FeatureRuns::add(const FeatureTable& table, Ordinal objects, const std::string& segment) {
  KIN_TRY(state_->begin_writing());
  rocksdb::WriteBatch batch;
  WireWriter count;
  count.u32(objects);
  batch.Put(kObjectsKey, as_text(count.bytes()));
  if (!segment.empty()) batch.Put(fmt::format("{}{}", kTakenPrefix, segment), "");
  if (table.size() > 0) {
    FeatureRunWriter writer(state_->path_of(state_->next_run), table.size(),
                            state_->filter_bytes_for(table.size(), state_->runs.size()));
    table.for_each([&](FeatureKey key, const Postings& postings) { writer.add(key, postings); });
    KIN_TRY_ASSIGN(const FeatureRunShape shape, writer.finish());
    KIN_TRY(state_->replace(state_->runs.size(), shape, batch));
  } else {
    KIN_TRY(check(state_->catalogue->Write(rocksdb::WriteOptions(), &batch)));
  }
  state_->objects = objects;
  if (!segment.empty()) state_->segments.insert(segment);
  return {};
}

Result<void> FeatureRuns::merge_if_due() {
  std::vector<State::Run>& runs = state_->runs;
  std::vector<std::uint64_t> sizes;
  for (const State::Run& run : runs) sizes.push_back(run.file.shape().keys);
  const std::size_t from = merge_from(sizes);
  if (from == runs.size()) return {};
  KIN_TRY(state_->begin_writing());

  std::uint64_t most_keys = 0;
  std::vector<std::unique_ptr<FeatureRun::Cursor>> cursors;  // newest first
  for (std::size_t i = runs.size(); i-- > from;) {
    most_keys += sizes[i];
    runs[i].file.forget_filter();  // memory is short when the largest are merged
    cursors.push_back(std::make_unique<FeatureRun::Cursor>(runs[i].file));
  }
  FeatureRunWriter writer(state_->path_of(state_->next_run), most_keys,
                          state_->filter_bytes_for(most_keys, from));
  constexpr FeatureKey kDone = ~FeatureKey{0};
  std::vector<FeatureKey> heads;
  for (const auto& cursor : cursors) heads.push_back(cursor->done() ? kDone : cursor->key());
  for (;;) {
    const FeatureKey key = *std::min_element(heads.begin(), heads.end());
    if (key == kDone) break;
    Postings postings;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (heads[i] != key) continue;
      postings.append_older(cursors[i]->postings());
      cursors[i]->next();
      heads[i] = cursors[i]->done() ? kDone : cursors[i]->key();
    }
    writer.add(key, postings);
  }
  for (const auto& cursor : cursors) KIN_TRY(cursor->result());
  cursors.clear();
  KIN_TRY_ASSIGN(const FeatureRunShape shape, writer.finish());
  rocksdb::WriteBatch batch;
  return state_->replace(from, shape, batch);
}

Ordinal FeatureRuns::objects() const { return state_->objects; }
const std::set<std::string>& FeatureRuns::segments() const { return state_->segments; }

}  // namespace kin::store
