#include "cmd/context.h"
#include "lib/base/text.h"
#include "store/migration.h"

namespace kin::cmd {
namespace {

struct MigrateOptions {
  bool apply = false;
};

Json names_of(const std::vector<const store::Migration*>& migrations) {
  Json out = Json::array();
  for (const store::Migration* const migration : migrations)
    out.push_back({{"name", migration->name}, {"summary", migration->summary}});
  return out;
}

Result<ExitCode> show_migrations(Context& context) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const auto needed,
                 store::needed_migrations(*repository, store::all_migrations(), context.stop()));
  const std::uint32_t version = repository->config().version;
  for (const store::Migration* const migration : needed)
    context.print_always(fmt::format("{:<16}  {}", migration->name, migration->summary));
  context.print_always(needed.empty()
                           ? fmt::format("nothing to migrate; the format is version {}", version)
                           : fmt::format("{} to apply (kin migrate --apply); the format is version {}",
                                         counted(needed.size(), "migration"), version));
  context.json("migrations", {{"format", version}, {"needed", names_of(needed)}});
  return ExitCode::ok;
}

Result<ExitCode> apply_migrations(Context& context) {
  // Two who rewrite the same would each do it.
  KIN_TRY_ASSIGN(const LockedRepository alone, open_repository_alone(context));
  const store::MigrationObserver observer{
      [&](std::string_view name) { context.print(fmt::format("applying {}", name)); },
      [&](std::string_view doing, std::uint64_t done, std::uint64_t all) {
        context.progress(fmt::format("{}: {} of {}", doing, grouped(done), grouped(all)));
      }};
  KIN_TRY_ASSIGN(const auto applied,
                 store::migrate(*alone.repository, store::all_migrations(), observer, context.stop()));
  context.progress("");
  const std::uint32_t version = alone.repository->config().version;
  context.print(applied.empty() ? fmt::format("nothing to migrate; the format is version {}", version)
                                : counted(applied.size(), "migration") + " applied");
  context.json("summary", {{"applied", names_of(applied)}, {"format", version}});
  return ExitCode::ok;
}

Action define_migrate(CLI::App& app) {
  auto options = std::make_shared<MigrateOptions>();
  app.add_flag("--apply", options->apply, "apply them; without this they are only named");
  return [options](Context& context) {
    return options->apply ? apply_migrations(context) : show_migrations(context);
  };
}

}  // namespace

extern const Command kMigrate{"migrate", "bring the format of an older repository up to date",
                              define_migrate};

}  // namespace kin::cmd
