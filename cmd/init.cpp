#include "cmd/context.h"
#include "cmd/parity_report.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

struct InitOptions {
  bool plain = false;
  std::string parity;
  bool append_only = false;
};

Result<ExitCode> run_init(Context& context, const InitOptions& options) {
  const bool plain = options.plain;
  unsigned parity_percent = 0;
  if (!options.parity.empty()) {
    KIN_TRY_ASSIGN(parity_percent, parse_parity_percent(options.parity));
  }
  const store::Access access = options.append_only ? store::Access::append_only : store::Access::read_write;
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
  KIN_TRY(create_repository(location, password, parity_percent, access));
  context.print(
      fmt::format("created a repository at {}{}", printable(location),
                  plain ? ", not encrypted"
                        : ", encrypted; without its password nobody can read it again, so keep that safe"));
  if (parity_percent > 0) context.print(fmt::format("packs get {} % of parity", parity_percent));
  if (options.append_only) context.print("nothing can be removed from it (kin access read-write lifts that)");
  Json fields{{"encrypted", !plain}, {"parity_percent", parity_percent}, {"access", store::name_of(access)}};
  set_path(fields, "repository", location);
  context.json("initialized", fields);
  return ExitCode::ok;
}

Action define_init(CLI::App& app) {
  auto options = std::make_shared<InitOptions>();
  app.add_flag("--plain", options->plain, "no encryption, no password");
  app.add_option("--parity", options->parity, "how much parity to heal damage from, of the packs' bytes: 5%")
      ->type_name("PERCENT");
  app.add_flag("--append-only", options->append_only, "backups can be added, and nothing can be removed");
  return [options](Context& context) { return run_init(context, *options); };
}

}  // namespace

extern const Command kInit{"init", "make a new repository", define_init};

}  // namespace kin::cmd
