// What kin makes of small corpora, to the byte: ratio_test [--update]
//
// tests/ratio/results.csv holds what each corpus takes at each effort. Any change of that fails here, and
// shows in the diff once it is accepted with --update. Every backup is made with one thread and with two,
// which must store the same.
//
// So that the numbers are the same on every machine, the repository's key is fixed (it decides which
// features a sketch has), and only content is counted: trees hold owners, inodes and times, and take a few
// bytes more or less each time. Salts and nonces are random, and their length is not. What another zstd makes
// is not comparable: then nothing is compared, and the exit code is 77.
#include "lib/engine/backup.h"
#include "store/repository.h"
#include "tests/ratio/corpora.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/source_directory.h"
#include "tests/support/temp_dir.h"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kin::testing {
namespace {

const std::string kResults = source_directory() + "/tests/ratio/results.csv";
const std::string kTexts = source_directory() + "/tests/ratio/corpus";
constexpr int kSkipped = 77;

struct NamedEffort {
  const char* name;
  Effort effort;
};
constexpr NamedEffort kEfforts[] = {
    {"fast", Effort::fast()}, {"normal", Effort::normal()}, {"max", Effort::max()}};

constexpr std::array<const char*, 8> kColumns = {"content_bytes", "pack_bytes",   "index_bytes",
                                                 "whole_blocks",  "delta_blocks", "group_blocks",
                                                 "deepest_chain", "all_chains"};
using Numbers = std::array<std::uint64_t, kColumns.size()>;
using Table = std::map<std::string, Numbers>;  // by "corpus,effort"

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "ratio_test: {}\n", message);
  std::exit(1);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) fail(result.error().message());
  return *std::move(result);
}

void require_ok(const Result<void>& result) {
  if (!result) fail(result.error().message());
}

struct Silent : BackupObserver {
  void on_skipped(const std::string& path, const Error& error) override {
    fail(path + ": " + error.message());
  }
  void on_warning(const std::string& message) override { fail(message); }
};

std::unique_ptr<store::Repository> make_repository(const std::string& cache_directory) {
  store::Config config;
  config.plain_master_key = Key{};
  for (std::size_t i = 0; i < config.plain_master_key->size(); ++i)
    (*config.plain_master_key)[i] = static_cast<std::uint8_t>(7 * i + 1);
  config.repository_id.fill(1);
  auto backend = store::make_memory_backend();
  require_ok(backend->put(store::config_name(), encode_config(config, *config.plain_master_key)));
  require_ok(backend->sync());
  store::OpenOptions options;
  options.cache_directory = cache_directory;
  return value_of(store::Repository::open(std::move(backend), options));
}

void write_files(const std::string& directory, const Files& files) {
  std::filesystem::remove_all(directory);
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = directory + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << as_text(bytes);
    if (!out.flush()) fail("cannot write " + path.string());
  }
}

// Of the packs with content: their bytes, what an index of them takes, and how their objects are kept.
Numbers measure(store::Repository& repository) {
  Numbers out{};
  auto& [content_bytes, pack_bytes, index_bytes, whole, delta, group, deepest, chains] = out;
  store::IndexSegment segment;
  for (const store::FileInfo& pack : value_of(repository.backend().list(store::FileKind::pack))) {
    std::vector<std::pair<BlockHeader, store::BlockRange>> blocks;
    require_ok(store::scan_pack(repository.sealer(), repository.backend(), pack,
                                [&](const BlockHeader& header, store::BlockRange range) -> Result<void> {
                                  blocks.emplace_back(header, range);
                                  return {};
                                }));
    if (blocks.empty() || is_metadata(blocks.front().first.objects.front().kind)) continue;
    pack_bytes += pack.size;
    const auto number = static_cast<std::uint32_t>(segment.packs.size());
    segment.packs.push_back({{}, pack.size});
    for (const auto& [header, range] : blocks) {
      segment.add_block(number, header, range);
      content_bytes += header.content_size;
      ++(header.base ? delta : header.objects.size() > 1 ? group : whole);
      for (const BlockObject& object : header.objects) {
        const unsigned depth = value_of(repository.chain(object.id)).depth;
        deepest = std::max<std::uint64_t>(deepest, depth);
        chains += depth;
      }
    }
  }
  segment.sort();
  index_bytes = encode_index_segment(segment).size();
  return out;
}

Numbers store_corpus(const Corpus& corpus, const Effort& effort, unsigned jobs) {
  const TempDir dir;
  const auto repository = make_repository(dir / "cache");
  require_ok(repository->refresh_index());
  value_of(repository->begin_writing());
  BackupRequest request;
  request.walk.sources = {{dir / "in", {"tree"}}};
  request.jobs = jobs;
  request.effort = effort;
  for (const Files& files : corpus.backups) {
    write_files(dir / "in", files);
    MemoryResumeLog log;
    Silent observer;
    const BackupResult result = value_of(backup(*repository, log, request, observer, {}));
    request.parent_tree = result.tree;
  }
  return measure(*repository);
}

Table measure_all() {
  Table out;
  for (const Corpus& corpus : value_of(make_corpora(kTexts)))
    for (const NamedEffort& effort : kEfforts) {
      const std::string row = corpus.name + "," + effort.name;
      out[row] = store_corpus(corpus, effort.effort, 1);
      if (store_corpus(corpus, effort.effort, 2) != out[row])
        fail(row + ": one thread and two do not store the same");
    }
  return out;
}

std::string zstd_line() { return fmt::format("# zstd {}", ZSTD_versionString()); }

std::string csv(const Table& table) {
  std::string out =
      zstd_line() + "\n# made by ratio_test --update: what small corpora take, content only\ncorpus,effort";
  for (const char* column : kColumns) out += fmt::format(",{}", column);
  for (const auto& [row, numbers] : table) {
    out += "\n" + row;
    for (const std::uint64_t number : numbers) out += fmt::format(",{}", number);
  }
  return out + "\n";
}

// What was pinned; nothing of a row that is not as wide as today's.
Table read_table(std::istream& in) {
  Table out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#") || line.starts_with("corpus,")) continue;
    std::istringstream cells(line);
    std::string corpus, effort, cell;
    std::getline(cells, corpus, ',');
    std::getline(cells, effort, ',');
    Numbers numbers{};
    std::size_t count = 0;
    for (; std::getline(cells, cell, ','); ++count)
      if (count < numbers.size()) numbers[count] = std::strtoull(cell.c_str(), nullptr, 10);
    if (count == numbers.size()) out[corpus + "," + effort] = numbers;
  }
  return out;
}

int compare(const Table& before, const Table& now) {
  constexpr const char* kLine = "{:<17} {:<14} {:>11} {:>11} {:>10}\n";
  int differences = 0;
  const auto tell = [&](const std::string& row, const char* column, const std::string& was,
                        const std::string& is, const std::string& change) {
    if (differences++ == 0) fmt::print(kLine, "corpus,effort", "", "results.csv", "now", "change");
    fmt::print(kLine, row, column, was, is, change);
  };
  for (const auto& [row, numbers] : now) {
    const auto old = before.find(row);
    if (old == before.end()) {
      tell(row, "", "none", "new", "");
      continue;
    }
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const std::uint64_t was = old->second[i], is = numbers[i];
      if (was == is) continue;
      const double change =
          100 * (static_cast<double>(is) / static_cast<double>(std::max<std::uint64_t>(was, 1)) - 1);
      tell(row, kColumns[i], std::to_string(was), std::to_string(is),
           was == 0 ? "" : fmt::format("{:+.2f} %", change));
    }
  }
  for (const auto& [row, numbers] : before)
    if (!now.contains(row)) tell(row, "", "there", "gone", "");
  return differences;
}

int run(bool update, const char* program) {
  std::ifstream in(kResults);
  std::string first;
  std::getline(in, first);
  if (!update && !in) fail(fmt::format("cannot read {}; {} --update makes it", kResults, program));
  if (!update && first != zstd_line()) {
    fmt::print("skipped: results.csv begins with '{}', and of this machine it would be '{}'\n", first,
               zstd_line());
    return kSkipped;
  }
  const Table before = read_table(in), now = measure_all();
  const int differences = compare(before, now);
  if (update) {
    std::ofstream out(kResults);
    out << csv(now);
    if (!out.flush()) fail(fmt::format("cannot write {}", kResults));
    return 0;
  }
  if (differences == 0) {
    fmt::print("{} rows are as in results.csv\n", now.size());
    return 0;
  }
  fmt::print("\n{} numbers differ from {}.\nIf that is meant, accept them with: {} --update\n", differences,
             kResults, program);
  return 1;
}

}  // namespace
}  // namespace kin::testing

int main(int argc, char** argv) {
  const bool update = argc == 2 && std::string(argv[1]) == "--update";
  if (argc > 1 && !update) {
    fmt::print(stderr, "usage: ratio_test [--update]\n");
    return 2;
  }
  return kin::testing::run(update, argv[0]);
}
