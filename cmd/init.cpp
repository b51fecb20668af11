#include "cmd/context.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

Result<ExitCode> run_init(Context& context, bool plain) {
  const std::string location = repository_location(context);
  KIN_TRY_ASSIGN(const auto backend, store::open_backend(location));
  std::optional<std::string> password;
  if (plain && has_password(context))
    return Error(ErrorCode::invalid_argument,
                 "--plain makes a repository without a password, but one is set");
  if (!plain) {
    // Before the person types a password for nothing.
    if (backend->get(store::config_name()))
      return Error(ErrorCode::invalid_argument, printable(location) + " is a repository already");
    KIN_TRY_ASSIGN(password, read_password(context, "new password for " + printable(location), true));
  }
  KIN_TRY(create_repository(location, password));
  context.print(
      fmt::format("created a repository at {}{}", printable(location),
                  plain ? ", not encrypted"
                        : ", encrypted; without its password nobody can read it again, so keep that safe"));
  Json fields{{"encrypted", !plain}};
  set_path(fields, "repository", location);
  context.json("initialized", fields);
  return ExitCode::ok;
}

Action define_init(CLI::App& app) {
  auto plain = std::make_shared<bool>(false);
  app.add_flag("--plain", *plain, "no encryption, no password");
  return [plain](Context& context) { return run_init(context, *plain); };
}

}  // namespace

extern const Command kInit{"init", "make a new repository", define_init};

}  // namespace kin::cmd
