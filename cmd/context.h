// What every command gets: the global options, the streams, and the ways to talk to a person or a program.
// Commands run in-process under test because nothing here is global.
#pragma once

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/result.h"
#include "lib/engine/directory_ids.h"
#include "store/repository.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <iosfwd>
#include <memory>
#include <stop_token>
#include <string>

namespace kin::cmd {

using Json = nlohmann::json;

// docs/cli.md lists them for users; exit_code_for() in main.cpp is the only mapping from errors.
enum class ExitCode {
  ok = 0,
  failed = 1,
  usage = 2,
  incomplete = 3,  // finished, but some files were skipped
  no_repository = 10,
  locked = 11,
  wrong_password = 12,
  corrupt = 13,
  not_found = 14,    // no such snapshot or path
  unsupported = 15,  // made by a newer kin
  wrong_base = 16,   // a delta was made from another file
  refused = 17,      // the repository is append-only or read-only
  interrupted = 130,
  nobody_reads = 141,  // as a shell tells of a program that SIGPIPE ended
};

struct GlobalOptions {
  std::string repository;
  std::string password_file, password_command;
  std::string cache_directory;
  bool no_cache = false;
  bool json = false;
  bool quiet = false;
  int verbose = 0;
  unsigned jobs = 0;  // 0: as many as suit the machine
};

class Context {
 public:
  Context(std::ostream& out, std::ostream& error, bool terminal, std::stop_token stop)
      : out_(out), error_(error), terminal_(terminal), stop_(std::move(stop)) {}

  GlobalOptions options;

  const std::stop_token& stop() const { return stop_; }
  unsigned jobs() const;
  bool shows_progress() const { return terminal_ && !options.json && !options.quiet; }

  // Thread-safe, all of them; none mixes its output with a progress line.
  void print(std::string_view line);                 // a result, to stdout; nothing with --json or --quiet
  void print_always(std::string_view line);          // one that --quiet leaves
  void json(const char* message_type, Json fields);  // a line, to stdout; nothing without --json
  void warn(std::string_view line);                  // to stderr, as text or JSON
  void progress(const std::string& line);            // replaces the progress line; empty: removes it
  std::ostream& raw_out() { return out_; }           // for content

  // An error once stdout takes no more: a long list need not go on. cancelled if what read it has gone, as
  // head does: that is no failure, and nothing to talk about.
  Result<void> still_heard() const;

 private:
  void clear_progress() KIN_REQUIRES(mutex_);

  std::ostream& out_;
  std::ostream& error_;
  const bool terminal_;
  const std::stop_token stop_;
  Mutex mutex_;
  bool progress_shown_ KIN_GUARDED_BY(mutex_) = false;
};

using Action = std::function<Result<ExitCode>(Context& context)>;

// A row of the command table in main.cpp.
struct Command {
  const char* name;
  const char* summary;
  Action (*define)(CLI::App& app);  // adds its options to `app`; the Action uses what they were set to
};

// JSON text must be UTF-8; a name that is not gets its bad bytes replaced, and its bytes in hexadecimal
// beside it.
void set_path(Json& fields, const char* key, std::string_view path);

// A check of CLI11: what an option names must have a name.
std::string is_not_empty(const std::string& text);

// Where a repository is, and where its password comes from.
struct RepositoryPlace {
  std::string location;
  std::string password_variable = "KIN_PASSWORD";  // of the environment
  std::string password_file, password_command;
};

// From -r or KIN_REPOSITORY, else the default place.
std::string repository_location(const Context& context);
std::string default_repository();
bool has_password(const Context& context);
std::string first_line(std::string_view text);  // without its line end, of whatever system
// Environment, file, command or prompt. `confirm` asks twice at a prompt.
Result<std::string> read_password(const Context& context, const std::string& prompt, bool confirm);

// For the few who change what is there instead of adding to it: one at a time, on this machine. Held until
// the descriptor is closed.
Result<Fd> lock_repository(const std::string& location, const std::stop_token& stop);
// Locked, so that two cannot make it at once and each go on with a key of its own.
Result<void> create_repository(const std::string& location, const std::optional<std::string>& password,
                               unsigned parity_percent = 0, store::Access access = store::Access::read_write);

// What becomes of packs that are found damaged, and that parity can heal. In memory: it is told, and read
// from there.
enum class Healing { none, in_memory, on_disk };

// Opens it and reads its index.
Result<std::unique_ptr<store::Repository>> open_repository(Context& context,
                                                           Healing healing = Healing::on_disk);
// Likewise one at another place than the global options say.
Result<std::unique_ptr<store::Repository>> open_repository_at(Context& context, const RepositoryPlace& place,
                                                              Healing healing = Healing::on_disk);
// For those who look at damage: they go on where the index cannot be read.
Result<std::unique_ptr<store::Repository>> open_repository_without_index(Context& context,
                                                                         Healing healing = Healing::on_disk);
// With the lock, which it has from before it is opened: what it says of itself is not what another is just
// changing.
struct LockedRepository {
  Fd lock;
  std::unique_ptr<store::Repository> repository;
};
Result<LockedRepository> open_repository_alone(Context& context, Healing healing = Healing::on_disk);
std::string cache_directory(const Context& context);
// The repository, the cache and a temporary index, as far as they are there: what no backup reads and no
// restore writes to.
DirectoryIds own_directories(const Context& context, const store::Repository& repository);
DirectoryIds own_directories(const Context& context);  // without one that is open

}  // namespace kin::cmd
