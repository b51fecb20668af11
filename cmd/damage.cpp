#include "store/damage.h"

#include "cmd/context.h"
#include "lib/base/text.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <random>

namespace kin::cmd {
namespace {

struct DamageOptions {
  std::optional<std::uint64_t> seed;
  std::string kind = "flip";
  std::string files = "packs";
  std::uint32_t count = 1;
  bool yes = false;
};

Result<std::vector<store::FileKind>> parse_files(const std::string& text) {
  using store::FileKind;
  if (text == "packs") return std::vector{FileKind::pack};
  if (text == "index") return std::vector{FileKind::index};
  if (text == "snapshots") return std::vector{FileKind::snapshot};
  if (text == "keys") return std::vector{FileKind::key};
  if (text == "parity") return std::vector{FileKind::parity};
  if (text == "all") return std::vector{FileKind::pack, FileKind::index, FileKind::snapshot};
  return Error(ErrorCode::invalid_argument, "--files is packs, index, snapshots, keys, parity or all");
}

Result<ExitCode> run_damage(Context& context, const DamageOptions& options) {
  const auto kind = store::parse_damage_kind(options.kind);
  if (!kind) return Error(ErrorCode::invalid_argument, "--kind is flip, zero, swap, cut, truncate or drop");
  KIN_TRY_ASSIGN(const std::vector<store::FileKind> files, parse_files(options.files));
  const std::string location = repository_location(context);
  if (!options.yes)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("this destroys what is in {}; with --yes it does so. Try it on a copy",
                             printable(location)));
  // Opened as any other, so that it is one, and that only who has the password harms it.
  KIN_TRY_ASSIGN(const auto repository, open_repository_without_index(context));
  KIN_TRY(repository->require_removable());
  const std::uint64_t seed = options.seed ? *options.seed : std::random_device()();
  store::Damager damager(repository->backend(), seed);
  for (std::uint32_t i = 0; i < options.count; ++i) {
    KIN_TRY_ASSIGN(const store::Damaged harmed, damager.harm(files, *kind));
    context.print(fmt::format("{}: {}, {} at {}", harmed.file.text(), options.kind,
                              counted(harmed.bytes, "byte"), grouped(harmed.offset)));
    context.json("damaged", {{"file", harmed.file.text()},
                             {"kind", options.kind},
                             {"offset", harmed.offset},
                             {"bytes", harmed.bytes}});
  }
  context.print(fmt::format("done {} with seed {}",
                            options.count == 1 ? "once" : counted(options.count, "time"), seed));
  context.json("summary", {{"seed", seed}, {"count", options.count}});
  return ExitCode::ok;
}

Action define_damage(CLI::App& app) {
  auto options = std::make_shared<DamageOptions>();
  app.add_option("--seed", options->seed, "do the same as the last time with this seed")->type_name("N");
  app.add_option("--kind", options->kind, "flip, zero, swap, cut, truncate or drop")->capture_default_str();
  app.add_option("--files", options->files, "packs, index, snapshots, keys, parity or all")
      ->capture_default_str();
  app.add_option("--count", options->count, "how often")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--yes", options->yes, "really");
  return [options](Context& context) { return run_damage(context, *options); };
}

}  // namespace

extern const Command kDamage{"damage", "harm a repository, to try what comes of it", define_damage};

}  // namespace kin::cmd
