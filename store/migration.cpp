#include "store/migration.h"

#include <fmt/core.h>

#include <array>

namespace kin::store {
namespace {

// A row for each: name, summary, is_needed, apply. None so far: format 1 has had one form since its first
// release.
constexpr std::array<Migration, 0> kMigrations{};

Result<bool> is_needed(const Migration& migration, Repository& repository, const std::stop_token& stop) {
  auto needed = migration.is_needed(repository, stop);
  if (!needed) return std::move(needed).error().context(fmt::format("migration {}", migration.name));
  return needed;
}

}  // namespace

std::span<const Migration> all_migrations() { return kMigrations; }

Result<std::vector<const Migration*>> needed_migrations(Repository& repository,
                                                        std::span<const Migration> migrations,
                                                        const std::stop_token& stop) {
  std::vector<const Migration*> out;
  for (const Migration& migration : migrations) {
    KIN_TRY_ASSIGN(const bool needed, is_needed(migration, repository, stop));
    if (needed) out.push_back(&migration);
  }
  return out;
}

Result<std::vector<const Migration*>> migrate(Repository& repository, std::span<const Migration> migrations,
                                              const MigrationObserver& observer,
                                              const std::stop_token& stop) {
  std::vector<const Migration*> out;
  for (const Migration& migration : migrations) {
    // Asked only now: one before it may have done its work, or made it needed.
    KIN_TRY_ASSIGN(const bool needed, is_needed(migration, repository, stop));
    if (!needed) continue;
    KIN_TRY(repository.require_removable());
    if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    observer.on_begin(migration.name);
    if (auto applied = migration.apply(repository, observer, stop); !applied)
      return std::move(applied).error().context(fmt::format("migration {}", migration.name));
    KIN_TRY_ASSIGN(const bool still_needed, is_needed(migration, repository, stop));
    if (still_needed)
      return Error(ErrorCode::corrupt, fmt::format("migration {} did not do what it is for", migration.name));
    out.push_back(&migration);
  }
  return out;
}

}  // namespace kin::store
