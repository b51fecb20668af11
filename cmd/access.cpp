#include "cmd/context.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

struct AccessOptions {
  std::string access;
};

std::string_view meaning_of(store::Access access) {
  switch (access) {
    case store::Access::read_write:
      return "snapshots are added and removed";
    case store::Access::append_only:
      return "snapshots are added, and nothing is removed";
    case store::Access::read_only:
      return "nothing is written";
  }
  return "";
}

Result<ExitCode> run_access(Context& context, const AccessOptions& options) {
  if (options.access.empty()) {
    KIN_TRY_ASSIGN(const auto repository, open_repository_without_index(context));
    const store::Access access = repository->config().access;
    context.print_always(fmt::format("{}: {}", store::name_of(access), meaning_of(access)));
    context.json("access", {{"access", store::name_of(access)}});
    return ExitCode::ok;
  }
  const std::optional<store::Access> access = store::access_named(options.access);
  if (!access)
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is none of read-write, append-only and read-only", printable(options.access)));
  // Who changes the part of parity writes the same file.
  KIN_TRY_ASSIGN(const LockedRepository alone, open_repository_alone(context));
  const store::Access before = alone.repository->config().access;
  if (*access != before) KIN_TRY(alone.repository->set_access(*access));
  context.print(fmt::format("{} from now on: {}{}", store::name_of(*access), meaning_of(*access),
                            *access == before ? fmt::format(" (as it was before)") : ""));
  context.json("access", {{"access", store::name_of(*access)}, {"before", store::name_of(before)}});
  return ExitCode::ok;
}

Action define_access(CLI::App& app) {
  auto options = std::make_shared<AccessOptions>();
  app.add_option("ACCESS", options->access, "read-write, append-only or read-only; none: tell which it is");
  return [options](Context& context) { return run_access(context, *options); };
}

}  // namespace

extern const Command kAccess{"access", "tell or choose what can be done to a repository", define_access};

}  // namespace kin::cmd
