#include "lib/sync/tree_directories.h"

#include "lib/sync/store_files.h"

#include <fcntl.h>
#include <unistd.h>

namespace kin::sync::tree {
namespace {

constexpr std::uint32_t kSpecialBits = 07000;  // setuid, setgid, sticky

}  // namespace

Result<Fd> WorkDirectories::enter(const std::string& folder, Enter how) {
  const bool make = how == Enter::and_make;
  const ErrorCode if_other = how == Enter::to_remove ? ErrorCode::not_found : ErrorCode::busy;
  if (make) KIN_TRY(make_root(root_.path()));
  KIN_TRY_ASSIGN(Fd at, root_.open(""));
  std::string path;
  for (const std::string& name : components_of(folder)) {
    KIN_TRY(make_writable(at, path, 0100));
    const std::string below = join_path(path, name);
    Result<Fd> next = open_below(at.get(), name, root_.full(below), if_other);
    if (!next && next.error().code() == ErrorCode::not_found && make) {
      KIN_TRY(make_writable(at, path, 0700));
      if (::mkdirat(at.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
        return errno_error("cannot make directory", root_.full(below));
      plans_.try_emplace(path);
      plans_.try_emplace(below);
      next = open_below(at.get(), name, root_.full(below), if_other);
    }
    if (!next) return std::move(next).error();
    at = *std::move(next);
    path = below;
  }
  KIN_TRY(make_writable(at, path, 0700));
  plans_.try_emplace(path);
  return at;
}

Result<void> WorkDirectories::make_writable(const Fd& directory, const std::string& folder,
                                            std::uint32_t bits) {
  struct stat info {};
  if (::fstat(directory.get(), &info) != 0) return errno_error("cannot look at", root_.full(folder));
  if (info.st_uid != ::geteuid() || (info.st_mode & bits) == bits) return {};
  const std::uint32_t mode = info.st_mode & (kModeBits | kSpecialBits);
  if (::chmod(path_by(directory).c_str(), mode | 0700) != 0)
    return errno_error("cannot set the mode of", root_.full(folder));
  Plan& plan = plans_[folder];
  if (!plan.before) plan.before = mode;
  return {};
}

void WorkDirectories::will_have(const std::string& folder, std::uint32_t mode, std::size_t change) {
  plans_[folder].wanted = {mode & kModeBits, change};
}

std::optional<std::uint32_t> WorkDirectories::mode_before(const std::string& folder) const {
  const auto plan = plans_.find(folder);
  if (plan == plans_.end() || !plan->second.before) return std::nullopt;
  return *plan->second.before & kModeBits;
}

Result<void> WorkDirectories::finish(const OnDone& on_done) {
  Result<void> all;
  for (const auto& [folder, plan] : plans_)
    if (auto finished = finish_one(folder, plan, on_done); !finished) all = std::move(finished);
  return all;
}

Result<void> WorkDirectories::finish_one(const std::string& folder, const Plan& plan,
                                         const OnDone& on_done) const {
  const std::string path = root_.full(folder);
  const Result<Fd> directory = root_.open(folder);
  if (!directory && directory.error().code() == ErrorCode::not_found && !plan.wanted) return {};
  if (!directory) return directory.error();
  const Fd readable(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (::fstat(directory->get(), &info) != 0) return errno_error("cannot look at", path);
  std::optional<std::uint32_t> mode = plan.before;
  // What it has of the special bits is its own business, and stays.
  if (plan.wanted) mode = plan.wanted->mode | (info.st_mode & kSpecialBits);
  std::optional<Error> refused;
  if (mode && ::chmod(path_by(*directory).c_str(), *mode) != 0) {
    refused = errno_error("cannot set the mode of", path);
    if (!plan.wanted) return *refused;
  }
  if (readable)
    KIN_TRY(sync_directory(readable.get(), path));
  else
    ::sync();
  if (!plan.wanted) return {};
  if (::fstat(directory->get(), &info) != 0) return errno_error("cannot look at", path);
  on_done(plan.wanted->change, refused ? Result<struct stat>(*refused) : info);
  return {};
}

}  // namespace kin::sync::tree
