// Client: one machine with files of its own and a cache of its own, which runs one command after the other,
// each by a Repository that it opens for it. What it does follows from its seed, and from what it is told.
#pragma once

#include "lib/engine/retention.h"
#include "tests/stress/model.h"
#include "tests/stress/world.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kin::testing {

// What all clients share. Only who has the turn touches it.
struct Company {
  World world;
  Model model;
  std::vector<Bytes> common;       // contents that several clients have
  std::vector<std::string> wrong;  // findings: each fails the seed
  std::uint64_t commands_begun = 0;
  std::size_t at_work = 0;
  unsigned parity_percent = 0;
  std::uint64_t damages = 0, healed = 0;  // bytes of packs, where there is parity
  bool is_damaged = false;                // one of them is, now
  bool somebody_applies_rules = false;    // to forget: one at a time, as on one machine
  bool may_be_broken = false;  // somebody was killed while he committed: a listed snapshot may not be whole
  std::function<void(const std::string&)> tell;                // of what happens; may be empty
  std::map<std::string, std::array<std::uint64_t, 2>> counts;  // commands: that ended well, and others

  Company(std::uint64_t seed, std::size_t clients) : world(seed, clients) {}
};

inline constexpr const char* kStressPassword = "correct horse";

// Encrypted or not. No cache directory: a temporary one.
Result<std::unique_ptr<store::Repository>> open_for_stress(std::unique_ptr<store::Backend> backend,
                                                           const std::string& cache_directory = "");

class Client {
 public:
  // No cache directory: each command has a temporary one.
  Client(Company& company, std::size_t number, std::uint64_t seed, std::string cache_directory);

  // By the thread that calls this.
  void begin() { life_.clock.use(); }
  // One command. Findings go to the company.
  void step();

 private:
  struct Command {
    const char* name;
    unsigned weight;
    Result<void> (Client::*run)(store::Repository& repository);
  };
  static const Command kCommands[];

  const Command& choose_command();
  Result<void> back_up(store::Repository& repository);
  Result<void> restore(store::Repository& repository);
  Result<void> forget(store::Repository& repository);
  Result<void> forget_by_rules(store::Repository& repository);
  Result<void> undelete(store::Repository& repository);
  Result<void> prune(store::Repository& repository);
  Result<void> check(store::Repository& repository);
  Result<void> tag(store::Repository& repository);
  Result<void> repair_index(store::Repository& repository);
  Result<void> meet_damage(store::Repository& repository);

  Result<void> look_through(store::Repository& repository, bool read_all);
  Result<void> apply_rules(store::Repository& repository);
  void require_kept(const RetentionPolicy& policy, const std::vector<const Snapshot*>& newest_first,
                    const std::vector<std::vector<std::string>>& reasons);
  Result<void> make_parity(store::Repository& repository);
  Result<void> forget_one(store::Repository& repository, const SnapshotId& id);
  void change_files();
  std::string next_label();
  bool is_excused() const { return company_.world.is_excused(life_); }
  void complain(const std::string& what);

  Company& company_;
  const std::size_t number_;
  Random random_;
  const std::string cache_directory_;
  Life life_;
  FileContents files_;
  std::vector<FileContents> former_;  // some of what files_ were
  std::map<std::string, ObjectId> previous_;
  std::uint64_t labels_ = 0;
};

}  // namespace kin::testing
