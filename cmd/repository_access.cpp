// Where the repository is and how its password is had.
#include "cmd/child_process.h"
#include "cmd/context.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace kin::cmd {
namespace {

constexpr std::size_t kMostPasswordBytes = 64 << 10;

std::string home() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? home : "/root";
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> output_of(const std::string& command) {
  KIN_TRY_ASSIGN(ChildProcess shell, ChildProcess::start({"/bin/sh", "-c", command}));
  Bytes output(kMostPasswordBytes);
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to(shell.fd(), output, command));
  if (!shell.wait({}))
    return Error(ErrorCode::wrong_password,
                 fmt::format("the password command failed: {}", printable(command)));
  return first_line(as_text(output).substr(0, size));
}

// From the terminal, whatever stdin and stdout are; the terminal shows nothing of it.
Result<std::string> prompt_for(const std::string& prompt, const std::string& variable) {
  const Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC));
  if (!terminal)
    return Error(ErrorCode::wrong_password,
                 fmt::format("the repository needs a password: set {0}, {0}_FILE or {0}_COMMAND", variable));
  termios before{};
  ::tcgetattr(terminal.get(), &before);
  termios silent = before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  KIN_TRY(write_all(terminal.get(), as_bytes(prompt + ": "), "/dev/tty"));
  ::tcsetattr(terminal.get(), TCSAFLUSH, &silent);
  std::string line(4096, '\0');
  const ssize_t size = ::read(terminal.get(), line.data(), line.size());
  ::tcsetattr(terminal.get(), TCSAFLUSH, &before);
  KIN_TRY(write_all(terminal.get(), as_bytes("\n"), "/dev/tty"));
  if (size <= 0) return Error(ErrorCode::cancelled, "no password given");
  return first_line(std::string_view(line).substr(0, static_cast<std::size_t>(size)));
}

}  // namespace

std::string first_line(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

std::string default_repository() {
  const std::string data = environment("XDG_DATA_HOME");
  return (data.empty() ? home() + "/.local/share" : data) + "/kin/default";
}

std::string repository_location(const Context& context) {
  return context.options.repository.empty() ? default_repository() : context.options.repository;
}

std::string cache_directory(const Context& context) {
  if (!context.options.cache_directory.empty()) return context.options.cache_directory;
  const std::string cache = environment("XDG_CACHE_HOME");
  return (cache.empty() ? home() + "/.cache" : cache) + "/kin";
}

namespace {

void add_directory(const std::string& path, DirectoryIds& out) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) out.emplace(info.st_dev, info.st_ino);
}

}  // namespace

DirectoryIds own_directories(const Context& context) {
  DirectoryIds out;
  add_directory(repository_location(context), out);
  add_directory(cache_directory(context), out);
  return out;
}

DirectoryIds own_directories(const Context& context, const store::Repository& repository) {
  DirectoryIds out = own_directories(context);
  for (const std::string& own : repository.local_directories()) add_directory(own, out);
  return out;
}

namespace {

RepositoryPlace place_of(const Context& context) {
  RepositoryPlace out;
  out.location = repository_location(context);
  out.password_file = context.options.password_file;
  out.password_command = context.options.password_command;
  return out;
}

bool has_password(const RepositoryPlace& place) {
  return std::getenv(place.password_variable.c_str()) != nullptr || !place.password_file.empty() ||
         !place.password_command.empty();
}

Result<std::string> read_password(const RepositoryPlace& place, const std::string& prompt, bool confirm) {
  if (const char* const password = std::getenv(place.password_variable.c_str())) return std::string(password);
  if (!place.password_file.empty()) {
    auto bytes = read_file(place.password_file, kMostPasswordBytes);
    if (!bytes) return std::move(bytes).error().context("the password file");
    return first_line(as_text(*bytes));
  }
  if (!place.password_command.empty()) return output_of(place.password_command);
  KIN_TRY_ASSIGN(std::string password, prompt_for(prompt, place.password_variable));
  if (confirm) {
    KIN_TRY_ASSIGN(const std::string again, prompt_for("the same again", place.password_variable));
    if (again != password) return Error(ErrorCode::invalid_argument, "the two passwords differ");
  }
  return password;
}

}  // namespace

bool has_password(const Context& context) { return has_password(place_of(context)); }

Result<std::string> read_password(const Context& context, const std::string& prompt, bool confirm) {
  return read_password(place_of(context), prompt, confirm);
}

Result<Fd> lock_repository(const std::string& location, const std::stop_token& stop) {
  Fd directory(::open(location.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_error("cannot open", location);
  // Not every file system has locks. What they prevent is no damage, only a nuisance.
  while (::flock(directory.get(), LOCK_EX) != 0 && errno == EINTR)
    if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  return directory;
}

Result<void> create_repository(const std::string& location, const std::optional<std::string>& password,
                               unsigned parity_percent, store::Access access) {
  if (password && password->empty())
    return Error(ErrorCode::invalid_argument,
                 "an empty password protects nothing (kin init --plain makes a repository without one)");
  KIN_TRY(make_directories(location, 0700));
  KIN_TRY_ASSIGN(const Fd lock, lock_repository(location, {}));
  KIN_TRY_ASSIGN(const auto backend, store::open_backend(location));
  return store::Repository::create(*backend, password, {}, Scanner::kDefaultFeatures, parity_percent, access);
}

namespace {

Result<std::unique_ptr<store::Repository>> open_without_index(Context& context, const RepositoryPlace& place,
                                                              Healing healing) {
  KIN_TRY_ASSIGN(auto backend, store::open_backend(place.location));
  store::OpenOptions options;
  options.cache_directory = cache_directory(context);
  options.use_cache = !context.options.no_cache;
  options.on_cache_lost = [&context](const Error& error) {
    context.warn(error.message() +
                 "; going on without the cache, which costs time and perhaps space, but no data");
  };
  options.heal = healing != Healing::none;
  options.put_back = healing == Healing::on_disk;
  options.on_healed = [&context, healing](const ObjectId& pack, const Result<void>& put_back) {
    if (healing == Healing::in_memory)
      context.warn(
          fmt::format("pack {} is damaged or missing, and can be healed from parity", pack.short_hex()));
    else
      context.warn(fmt::format("pack {} was damaged or missing, and is healed from parity{}",
                               pack.short_hex(),
                               put_back ? "" : ", but cannot be put back: " + put_back.error().message()));
  };
  options.on_warning = [&context](const Error& error) { context.warn(error.message()); };
  options.password = [&] { return read_password(place, "password for " + printable(place.location), false); };
  KIN_TRY_ASSIGN(auto repository, store::Repository::open(std::move(backend), options));
  // Whoever has a password set means an encrypted repository. If someone put a plain one in its place, the
  // next backup would lie open.
  if (repository->config().encryption == store::Encryption::none && has_password(place))
    return Error(ErrorCode::wrong_password,
                 fmt::format("the repository {} is not encrypted, but a password is set: unset it to go on",
                             printable(place.location)));
  return repository;
}

}  // namespace

Result<std::unique_ptr<store::Repository>> open_repository_without_index(Context& context, Healing healing) {
  return open_without_index(context, place_of(context), healing);
}

Result<std::unique_ptr<store::Repository>> open_repository_at(Context& context, const RepositoryPlace& place,
                                                              Healing healing) {
  KIN_TRY_ASSIGN(auto repository, open_without_index(context, place, healing));
  KIN_TRY(repository->refresh_index());
  return repository;
}

Result<std::unique_ptr<store::Repository>> open_repository(Context& context, Healing healing) {
  return open_repository_at(context, place_of(context), healing);
}

Result<LockedRepository> open_repository_alone(Context& context, Healing healing) {
  auto lock = lock_repository(repository_location(context), context.stop());
  if (!lock && lock.error().code() == ErrorCode::cancelled) return std::move(lock).error();
  // Where there is nothing to lock, opening it says best why.
  KIN_TRY_ASSIGN(auto repository, open_repository(context, healing));
  if (!lock) return std::move(lock).error();
  return LockedRepository{*std::move(lock), std::move(repository)};
}

}  // namespace kin::cmd
