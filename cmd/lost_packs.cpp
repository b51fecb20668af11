#include "cmd/lost_packs.h"

#include "lib/base/text.h"

#include <fmt/core.h>

namespace kin::cmd {
namespace {

constexpr std::size_t kMostNamed = 3;

}  // namespace

std::string lost_packs_text(const store::Repository& repository) {
  const std::vector<ObjectId> lost = repository.lost_packs();
  if (lost.empty()) return "";
  if (lost.size() == 1) return fmt::format("pack {} is missing or damaged", lost[0].short_hex());
  std::string named;
  for (std::size_t i = 0; i < lost.size() && i < kMostNamed; ++i)
    named += (i > 0 ? ", " : "") + lost[i].short_hex();
  const std::string more = lost.size() > kMostNamed ? ", ..." : "";
  return fmt::format("{} packs are missing or damaged ({}{})", grouped(lost.size()), named, more);
}

Result<bool> warn_of_counted_packs(Context& context, store::Repository& repository) {
  KIN_TRY(repository.find_lost_packs());
  const std::string lost = lost_packs_text(repository);
  if (lost.empty()) return false;
  context.warn(lost +
               ": what was in there is counted, and may be lost (kin check --read-data names the files)");
  return true;
}

}  // namespace kin::cmd
