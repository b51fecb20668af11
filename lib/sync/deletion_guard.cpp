#include "lib/sync/deletion_guard.h"

#include "lib/base/text.h"

#include <fmt/core.h>

namespace kin::sync {
namespace {

constexpr std::uint64_t kMostDeletions = 50, kMostDeletedPercent = 20;

}  // namespace

Result<void> check_deletions(Replica& replica, const std::map<std::string, std::uint64_t>& by_folder,
                             bool are_gone, const char* where) {
  std::uint64_t all = 0;
  for (const auto& [folder, count] : by_folder) all += count;
  if (all <= kMostDeletions) return {};
  std::map<std::string, std::uint64_t> live;
  std::uint64_t all_live = 0;
  KIN_TRY(replica.commit(false));
  KIN_TRY(replica.for_each_live([&](const KnownItem& known) -> Result<void> {
    ++live[known.item.folder];
    ++all_live;
    return {};
  }));
  const auto check = [&](const std::string& what, std::uint64_t count, std::uint64_t left) -> Result<void> {
    const std::uint64_t before = are_gone ? left + count : left;
    if (count <= kMostDeletions || count * 100 <= before * kMostDeletedPercent) return {};
    return Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "this would delete {} of {} items of {} {}; nothing was deleted (--allow-deletes lets it)",
            grouped(count), grouped(before), what, where));
  };
  for (const auto& [folder, count] : by_folder)
    KIN_TRY(
        check(folder.empty() ? "the root folder" : "the folder " + printable(folder), count, live[folder]));
  return check("the store", all, all_live);
}

}  // namespace kin::sync
