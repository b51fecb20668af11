// The command table, the global options, and the one mapping from errors to exit codes.
#include "cmd/completion.h"
#include "cmd/context.h"
#include "cmd/version.h"
#include "lib/base/allocator.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <signal.h>
#include <span>
#include <time.h>
#include <unistd.h>

namespace kin::cmd {

extern const Command kAccess, kBackup, kCache, kCheck, kCompare, kCompletion, kCopy, kDamage, kDelta, kDiff,
    kDump, kEstimate, kExplain, kExport, kFind, kForget, kGroups, kImport, kInit, kKey, kLs, kMigrate,
    kParity, kPatch, kPrune, kRepair, kReport, kRestore, kServe, kSimhash, kSimilar, kSnapshots, kStats,
    kStudy, kSync, kTag, kUndelete;

namespace {

const Command* const kCommands[] = {
    &kInit,    &kBackup, &kRestore,    &kEstimate, &kSnapshots, &kLs,      &kFind,     &kDiff,
    &kDump,    &kExport, &kImport,     &kExplain,  &kTag,       &kForget,  &kUndelete, &kPrune,
    &kCopy,    &kStats,  &kReport,     &kCheck,    &kKey,       &kAccess,  &kDamage,   &kCache,
    &kRepair,  &kParity, &kMigrate,    &kDelta,    &kPatch,     &kSimilar, &kGroups,   &kCompare,
    &kSimhash, &kStudy,  &kCompletion, &kSync,     &kServe,
};

ExitCode exit_code_for(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
      return ExitCode::usage;
    case ErrorCode::no_repository:
      return ExitCode::no_repository;
    case ErrorCode::busy:
      return ExitCode::locked;
    case ErrorCode::wrong_password:
      return ExitCode::wrong_password;
    case ErrorCode::wrong_base:
      return ExitCode::wrong_base;
    case ErrorCode::refused:
      return ExitCode::refused;
    case ErrorCode::corrupt:
      return ExitCode::corrupt;
    case ErrorCode::not_found:
      return ExitCode::not_found;
    case ErrorCode::unsupported:
      return ExitCode::unsupported;
    case ErrorCode::cancelled:
      return ExitCode::interrupted;
    case ErrorCode::io:
    case ErrorCode::no_space:
      return ExitCode::failed;
  }
  return ExitCode::failed;
}

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_option("-r,--repository", options.repository, "the repository's directory")
      ->envname("KIN_REPOSITORY");
  app.add_option("--password-file", options.password_file, "the file whose first line is the password")
      ->envname("KIN_PASSWORD_FILE");
  app.add_option("--password-command", options.password_command, "the shell command that prints the password")
      ->envname("KIN_PASSWORD_COMMAND");
  app.add_flag("--json", options.json, "lines of JSON on stdout, for programs");
  app.add_flag("-q,--quiet", options.quiet, "no summary and no progress");
  app.add_flag("-v,--verbose", options.verbose, "name each file; twice: also those that did not change");
  app.add_flag("--no-cache", options.no_cache, "use no local cache");
  app.add_option("--cache-dir", options.cache_directory, "where the local cache is")
      ->envname("KIN_CACHE_DIR");
  app.add_option("-j,--jobs", options.jobs,
                 "threads for reading and for encoding (default: one per core, at most 8)")
      ->check(CLI::Range(1, 256));
}

int report_failure(Context& context, const Error& error) {
  const ExitCode code = exit_code_for(error);
  context.progress("");
  if (context.options.json) {
    std::cerr << Json{{"message_type", "exit_error"},
                      {"code", static_cast<int>(code)},
                      {"message", error.message()}}
                     .dump(-1, ' ', false, Json::error_handler_t::replace)
              << '\n';
  } else {
    std::cerr << "kin: " << error.message() << '\n';
  }
  return static_cast<int>(code);
}

// 0 if all of a short text has reached stdout, or nobody wants the rest.
int finish_output(Context& context) {
  std::cout.flush();
  const auto heard = context.still_heard();
  if (heard || heard.error().code() == ErrorCode::cancelled) return 0;
  return report_failure(context, heard.error());
}

std::stop_source stop_source;

constexpr std::int64_t kSameSignalMilliseconds = 300;
std::atomic<std::int64_t> first_signal_milliseconds = 0;

void on_signal(int) {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t milliseconds = time.tv_sec * 1000 + time.tv_nsec / 1000000;
  if (!stop_source.stop_requested()) {
    first_signal_milliseconds = milliseconds;
    stop_source.request_stop();
  } else if (milliseconds - first_signal_milliseconds > kSameSignalMilliseconds) {
    // A second Ctrl-C means now. But timeout(1) signals its child and then the group that the child is in:
    // what comes so soon is no second one.
    ::_exit(static_cast<int>(ExitCode::interrupted));
  }
}

// CLI11 takes the next word for what is missing: `--html="$UNSET" a.txt` would replace a.txt by a page.
std::optional<std::string> option_without_value(std::span<char* const> words) {
  for (const std::string_view word : words) {
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return std::string(word);
  }
  return std::nullopt;
}

// The number of a closed descriptor goes to the next file that is opened: then messages would be written into
// the cache, and --stdin would read some file of ours. What takes its place here is as useless as it was, to
// us and to the commands that we start.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/", O_PATH));
}

}  // namespace

int main(int count, char** arguments) {
  fill_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);  // `kin -v backup | head` still makes a backup
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error to be told, not the end
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited {};
    ::sigaction(signal_number, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) ::sigaction(signal_number, &action, nullptr);  // nohup means it
  }
  raise_open_file_limit();
  set_up_allocator();

  CLI::App app("kin: backups as differences between similar files", "kin");
  Context context(std::cout, std::cerr, ::isatty(STDERR_FILENO) != 0, stop_source.get_token());
  add_global_options(app, context.options);
  app.set_version_flag("--version", std::string("kin ") + kVersion);
  app.require_subcommand(1);
  app.fallthrough();
  app.get_formatter()->column_width(34);
  Action chosen;
  for (const Command* command : kCommands) {
    CLI::App* const sub = app.add_subcommand(command->name, command->summary)->fallthrough();
    const Action run = command->define(*sub);
    sub->callback([&chosen, run] { chosen = run; });
  }
  const std::span<char* const> words(arguments, static_cast<std::size_t>(count));
  if (const auto option = option_without_value(words.subspan(std::min<std::size_t>(words.size(), 1)))) {
    std::cerr << "kin: there is no value behind " << printable(*option)
              << " (where an empty one makes sense, it is a word of its own: '')\n";
    return static_cast<int>(ExitCode::usage);
  }
  std::string help_topic;
  CLI::App* const help = app.add_subcommand("help", "say how a command is used");
  help->add_option("COMMAND", help_topic);
  try {
    app.parse(count, arguments);
  } catch (const CLI::CallForVersion& version) {
    context.options.json = app.count("--json") > 0;  // it may stand behind, and not be looked at yet
    context.json("version", {{"version", kVersion}});
    context.print_always(version.what());
    return finish_output(context);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints the help
      return finish_output(context);
    }
    // CLI11 says that a command is needed when the one given is none.
    if (const std::vector<std::string> rest = app.remaining(true);
        error.get_name() == "RequiredError" && !rest.empty()) {
      std::cerr << "kin: there is no command '" << printable(rest.front())
                << "' (kin help lists what there is)\n";
      return static_cast<int>(ExitCode::usage);
    }
    std::cerr << "kin: " << error.what() << " (kin help lists what there is)\n";
    return static_cast<int>(ExitCode::usage);
  }
  if (help->parsed()) {
    const CLI::App* topic = &app;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      if (command->get_name() == help_topic) topic = command;
    if (topic == &app && !help_topic.empty())
      return report_failure(context, Error(ErrorCode::invalid_argument, "there is no command " + help_topic));
    // Not topic->help(): that gives the help of the command that was parsed, which is "help".
    std::cout << app.get_formatter()->make_help(topic, topic == &app ? "kin" : "kin " + help_topic,
                                                CLI::AppFormatMode::Normal);
    return finish_output(context);
  }
  set_completion_app(app);
  auto result = chosen(context);
  context.progress("");
  std::cout.flush();
  const auto heard = context.still_heard();
  const bool nobody_reads = !heard && heard.error().code() == ErrorCode::cancelled;
  if (!result && result.error().code() == ErrorCode::cancelled && nobody_reads &&
      !stop_source.stop_requested())
    return static_cast<int>(ExitCode::nobody_reads);
  if (!result) return report_failure(context, result.error());
  // Who did all the work, a backup or a short list, tells how that went.
  if (!heard && !nobody_reads) return report_failure(context, heard.error());
  return static_cast<int>(*result);
}

}  // namespace kin::cmd

int main(int count, char** arguments) {
  try {
    return kin::cmd::main(count, arguments);
  } catch (const std::exception& error) {
    // Only the standard library throws: mostly when memory runs out.
    std::cerr << "kin: " << error.what() << '\n';
    return 1;
  }
}
