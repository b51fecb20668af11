#include "cmd/context.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

Result<ExitCode> run_rebuild_index(Context& context) {
  KIN_TRY_ASSIGN(const auto repository, open_repository_without_index(context));
  KIN_TRY_ASSIGN(const auto stats,
                 repository->rebuild_index([&](const Error& error) { context.warn(error.message()); },
                                           [&](std::size_t done, std::size_t all) {
                                             context.progress(fmt::format("{} of {} packs", done, all));
                                           }));
  context.print(fmt::format("indexed {} objects in {} blocks of {} packs", grouped(stats.objects),
                            grouped(stats.blocks), grouped(stats.packs)));
  context.json("summary", {{"packs", stats.packs},
                           {"blocks", stats.blocks},
                           {"objects", stats.objects},
                           {"damaged_packs", stats.damaged_packs}});
  if (stats.damaged_packs == 0) return ExitCode::ok;
  context.warn(
      fmt::format("{} pack{} damaged; what can be found in {} is indexed (kin check --read-data names "
                  "the files that are lost)",
                  stats.damaged_packs, stats.damaged_packs == 1 ? " is" : "s are",
                  stats.damaged_packs == 1 ? "it" : "them"));
  return ExitCode::corrupt;
}

Action define_rebuild_index(CLI::App&) { return run_rebuild_index; }

}  // namespace

extern const Command kRebuildIndex{"rebuild-index", "make a new index from the packs", define_rebuild_index};

}  // namespace kin::cmd
