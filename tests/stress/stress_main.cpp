// Random programs of several clients on one repository, with kills, crashes, full disks, clocks that jump
// and, where there is parity, damage, against a plain model of what must be restorable.
//
//     stress_tests [--seed N] [--seeds COUNT] [--steps M] [--tell]
//
// The same seed does the same again. A seed that fails is printed, and with --tell, what each client did.
//
//     stress_tests crashes [--seed N] [--seeds COUNT] [--steps M] [--stride S] [--least POINTS]
//     stress_tests bytes [--stride S]
//     stress_tests parity [--seeds COUNT]
//
// One client's programs, stopped at each (or each S-th) change to the disk; each (or each S-th) byte of a
// small repository changed; and what parity heals. All print what they counted.
#include "store/block_use.h"
#include "store/check.h"
#include "store/prune.h"
#include "tests/stress/client.h"
#include "tests/stress/crash_points.h"
#include "tests/stress/every_byte.h"
#include "tests/stress/parity_damage.h"
#include "tests/support/temp_dir.h"

#include <fmt/core.h>
#include <sodium.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace kin::testing {
namespace {

using store::Repository;

// Names of files, keys and nonces: they say in which order things are listed, and which of two is taken.
class SeededRandomness {
 public:
  static void use() {
    static randombytes_implementation own{name, next, nullptr, nullptr, fill, nullptr};
    randombytes_set_implementation(&own);
  }
  static void start(std::uint64_t seed) { random() = Random(seed); }

 private:
  static Random& random() {
    static Random own(0);
    return own;
  }
  static const char* name() { return "seeded"; }
  static std::uint32_t next() { return static_cast<std::uint32_t>(random().next()); }
  static void fill(void* out, std::size_t size) {
    for (auto* at = static_cast<std::uint8_t*>(out); size > 0; --size)
      *at++ = static_cast<std::uint8_t>(random().next());
  }
};

constexpr std::uint64_t kRounds = 4;  // after each, nobody is at work, and all is compared
constexpr int kMostPrunesToTheEnd = 8;
// What packs may take besides what is needed: a pack of which less than 1 % is needless is not written anew.
constexpr double kMostNeedlessShare = 0.01;

class Program {
 public:
  Program(std::uint64_t seed, std::uint64_t steps, const std::string& caches, bool tell)
      : random_(seed), steps_(steps), company_(seed, 2 + seed % 3) {
    SeededRandomness::start(seed);
    if (tell) company_.tell = [](const std::string& text) { fmt::print("{}\n", text); };
    if (seed % 4 == 3) password_ = kStressPassword;
    const bool has_caches = seed % 8 < 2;
    if (seed % 5 == 2) company_.parity_percent = 20;
    for (int i = 0; i < 6; ++i)
      company_.common.push_back(text_like(random_.next(), 1'500 + random_.below(5'000)));
    for (std::size_t i = 0; i < 2 + seed % 3; ++i)
      clients_.push_back(std::make_unique<Client>(
          company_, i, random_.next(), has_caches ? fmt::format("{}/{}.{}", caches, seed, i) : ""));
  }

  // What is wrong, if anything.
  std::vector<std::string> run() {
    auto created = Repository::create(*company_.world.disk().open(), password_, {1, 8192},
                                      Scanner::kDefaultFeatures, company_.parity_percent);
    if (!created) return {created.error().message()};
    for (std::uint64_t round = 0; round < kRounds && company_.wrong.empty(); ++round) {
      run_round(steps_ / kRounds);
      company_.world.calm_down();
      if (company_.wrong.empty()) compare("after round " + std::to_string(round + 1));
    }
    if (company_.wrong.empty()) prune_to_the_end();
    return company_.wrong;
  }

  const Company& company() const { return company_; }

 private:
  void run_round(std::uint64_t steps) {
    std::vector<std::thread> threads;
    Turns& turns = company_.world.turns();
    for (std::size_t i = 0; i < clients_.size(); ++i) turns.join(i);
    for (std::size_t i = 0; i < clients_.size(); ++i)
      threads.emplace_back([&, i] {
        turns.begin(i);
        clients_[i]->begin();
        for (; steps > 0 && company_.wrong.empty(); turns.pass(i)) {
          --steps;
          clients_[i]->step();
        }
        turns.leave(i);
      });
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<Repository> reopen() {
    auto repository = open_for_stress(company_.world.disk().open());
    if (repository) return *std::move(repository);
    company_.wrong.push_back("cannot be opened: " + repository.error().message());
    return nullptr;
  }

  void compare(const std::string& when) {
    const auto repository = reopen();
    if (!repository) return;
    for (const std::string& wrong : company_.model.compare(*repository))
      company_.wrong.push_back(when + ": " + wrong);
    company_.may_be_broken = false;
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) {
      // Who gave up may have listed what a prune then removed; what a snapshot needs of it is named as well.
      if (!problem.starts_with("pack ") || !problem.ends_with(" is missing"))
        company_.wrong.push_back(when + ": check: " + problem);
    };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    const auto checked = store::check(*repository, {}, {store::ReadSubset::Kind::all}, observer, {});
    if (!checked) company_.wrong.push_back(when + ": check: " + checked.error().message());
  }

  void prune_to_the_end() {
    for (int i = 0;; ++i) {
      const auto repository = reopen();
      if (!repository) return;
      store::PruneOptions options;
      options.most_unused_share = 0;
      ++company_.model.prunes_begun;
      const auto report =
          store::Prune(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({});
      ++company_.model.prunes_ended;
      if (!report) return company_.wrong.push_back("the last prune: " + report.error().message());
      if (report->removed.packs + report->marked.packs + report->forgotten_kept == 0) break;
      if (i == kMostPrunesToTheEnd) return company_.wrong.push_back("prunes come to no end");
    }
    compare("after the last prune");
    if (const auto repository = reopen()) require_nothing_needless(*repository);
  }

  void require_nothing_needless(Repository& repository) {
    auto use = store::BlockUse::read(repository, {});
    const auto ids = repository.list_snapshots();
    for (const SnapshotId& id : *ids)
      if (use) static_cast<void>(use->add(*repository.load_snapshot(id), {}));
    if (!use) return company_.wrong.push_back("at the end: " + use.error().message());
    double needed = 0, all = 0;
    for (const store::BlockUse::Pack& pack : use->packs()) needed += pack.used_bytes;
    for (const auto& [name, bytes] : company_.world.disk().files())
      if (name.kind == store::FileKind::pack) all += static_cast<double>(bytes.size()) - 24;
    if (all > needed * (1 + 2 * kMostNeedlessShare))
      company_.wrong.push_back(fmt::format("at the end {} bytes are left, and {} are needed", all, needed));
    for (const FileName& name : company_.world.disk().names(store::FileKind::forgotten))
      if (!company_.world.disk().files().contains({store::FileKind::snapshot, name.name}))
        company_.wrong.push_back("at the end, " + name.text() + " is left");
  }

  Random random_;
  std::uint64_t steps_;
  Company company_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::optional<std::string> password_;
};

std::uint64_t number_after(int argc, char** argv, const char* name, std::uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0)
      std::from_chars(argv[i + 1], argv[i + 1] + std::strlen(argv[i + 1]), otherwise);
  return otherwise;
}

int tell(const std::vector<std::string>& wrong) {
  for (const std::string& text : wrong) fmt::print("{}\n", text);
  return wrong.empty() ? 0 : 1;
}

int run_crashes(int argc, char** argv) {
  const std::uint64_t first = number_after(argc, argv, "--seed", 1);
  const std::uint64_t seeds = number_after(argc, argv, "--seeds", 1);
  const std::uint64_t steps = number_after(argc, argv, "--steps", 12);
  const std::uint64_t stride = std::max<std::uint64_t>(number_after(argc, argv, "--stride", 1), 1);
  CrashPoints found;
  std::vector<std::string> wrong;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SeededRandomness::start(seed);
    stop_everywhere(seed, steps, stride, found);
    for (const std::string& text : std::exchange(found.wrong, {}))
      wrong.push_back(fmt::format("seed {}: {}", seed, text));
  }
  for (const auto& [name, count] : found.stopped) fmt::print("{}: stopped {} times\n", name, count);
  fmt::print("{} programs of {} commands, {} crash points, {} findings\n", seeds, steps, found.all,
             wrong.size());
  if (found.all < number_after(argc, argv, "--least", 1)) wrong.emplace_back("these are too few");
  return tell(wrong);
}

int run_bytes(int argc, char** argv) {
  const std::uint64_t stride = std::max<std::uint64_t>(number_after(argc, argv, "--stride", 1), 1);
  std::vector<std::string> wrong;
  for (const bool is_encrypted : {false, true})
    for (const bool has_parity : {false, true}) {
      SeededRandomness::start(1);
      ByteFlips found;
      flip_every_byte(is_encrypted, has_parity, stride, found);
      for (const auto& [kind, count] : found.counts)
        fmt::print("{}, {} parity: {}: {} healed, {} told, {} unused\n", is_encrypted ? "encrypted" : "plain",
                   has_parity ? "with" : "without", kind, count.healed, count.told, count.unused);
      wrong.insert(wrong.end(), found.wrong.begin(), found.wrong.end());
    }
  fmt::print("{} findings\n", wrong.size());
  return tell(wrong);
}

int run_parity(int argc, char** argv) {
  ParityDamage found;
  SeededRandomness::start(1);
  damage_and_heal(number_after(argc, argv, "--seeds", 200), found);
  fmt::print("{} packs, {} bytes\n", found.packs, found.pack_bytes);
  ParityDamage::Count all;
  for (const auto& [shape, count] : found.counts) {
    fmt::print("{}: {} of {} healed; {} places, {} bytes\n", shape, count.healed, count.all, count.stretches,
               count.bytes);
    all.healed += count.healed;
    all.all += count.all;
  }
  fmt::print("{} of {} damages healed\n", all.healed, all.all);
  return tell(found.wrong);
}

int run_all(int argc, char** argv) {
  SeededRandomness::use();
  const TempDir caches;
  // Temporary caches, which all others have, are in memory where there is no place for them.
  ::setenv("TMPDIR", "/nowhere", 1);
  if (argc > 1 && std::strcmp(argv[1], "crashes") == 0) return run_crashes(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "bytes") == 0) return run_bytes(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "parity") == 0) return run_parity(argc, argv);
  const std::uint64_t first = number_after(argc, argv, "--seed", 1);
  const std::uint64_t seeds = number_after(argc, argv, "--seeds", 1);
  const std::uint64_t steps = number_after(argc, argv, "--steps", 200);
  const bool tell = std::strcmp(argv[argc - 1], "--tell") == 0;
  std::map<std::string, std::array<std::uint64_t, 2>> counts;
  std::uint64_t failed = 0, troubles = 0, jumps = 0, left_broken = 0, damages = 0, healed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Program program(seed, steps, caches.path(), tell);
    const std::vector<std::string> wrong = program.run();
    for (const auto& [name, count] : program.company().counts)
      for (const std::size_t i : {0U, 1U}) counts[name][i] += count[i];
    troubles += program.company().world.troubles();
    jumps += program.company().world.clock_jumps();
    damages += program.company().damages;
    healed += program.company().healed;
    left_broken += program.company().model.left_broken();
    if (wrong.empty()) continue;
    ++failed;
    for (const std::string& text : wrong) fmt::print("seed {}: {}\n", seed, text);
    fmt::print("again: stress_tests --seed {} --steps {} --tell\n", seed, steps);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& [name, count] : counts) fmt::print("{}: {} done, {} not\n", name, count[0], count[1]);
  fmt::print(
      "{} seeds of {} steps, {} failed; {} crashes and full disks, {} clock jumps, {} damaged bytes of which "
      "{} "
      "were healed, {} snapshots left broken; {:.1f} s\n",
      seeds, steps, failed, troubles, jumps, damages, healed, left_broken, seconds);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kin::testing

int main(int argc, char** argv) { return kin::testing::run_all(argc, argv); }
