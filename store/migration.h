// Migration: brings what an older kin has written into the form that a new one writes. Readers of every
// format that was ever released stay (docs/format.md, section 20), so none has to be run; it is for what is
// only to be had in the new form.
//
// To add one: a file with its two functions, and a row in migration.cpp. Rows stay, in the order in which
// they came: that is the order in which they are run.
#pragma once

#include "store/repository.h"

#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

namespace kin::store {

struct MigrationObserver {
  std::function<void(std::string_view name)> on_begin;
  std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> on_progress;
};

struct Migration {
  const char* name;
  const char* summary;  // what it does, for people
  // By what is stored, not by what the repository has read of it: a migration before this one may have
  // changed that.
  Result<bool> (*is_needed)(Repository& repository, const std::stop_token& stop);
  // Wherever it is interrupted, the repository is sound, and it is needed still; run again, it finishes.
  Result<void> (*apply)(Repository& repository, const MigrationObserver& observer,
                        const std::stop_token& stop);
};

std::span<const Migration> all_migrations();

// Of these, in their order.
Result<std::vector<const Migration*>> needed_migrations(Repository& repository,
                                                        std::span<const Migration> migrations,
                                                        const std::stop_token& stop);
// Applies those that are needed, one after the other, and gives them. refused, before anything is done, if
// something is needed and the repository is not read-write.
Result<std::vector<const Migration*>> migrate(Repository& repository, std::span<const Migration> migrations,
                                              const MigrationObserver& observer, const std::stop_token& stop);

}  // namespace kin::store
