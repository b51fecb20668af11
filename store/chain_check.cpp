#include "store/chain_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace kin::store {

static_assert(kMostChain <= std::numeric_limits<std::uint8_t>::max());

std::optional<std::string> ChainCheck::damage_at(const Location& location) const {
  const auto pack = packs_.find(location.pack);
  if (pack != packs_.end() && location.range.offset + location.range.size > pack->second.size)
    return pack->second.what;
  if (!blocks_.contains({location.pack, location.range.offset})) return std::nullopt;
  return fmt::format("{} at byte {} is damaged", FileName{FileKind::pack, location.pack.hex()}.text(),
                     location.range.offset);
}

Result<std::optional<std::string>> ChainCheck::find_fault(const Location& there) {
  const auto endless = [](std::uint64_t& count) {
    ++count;
    return std::optional<std::string>("the chain of bases is too long or has a loop");
  };
  // The deepest damage: what leans on it may have been found damaged only because of it.
  std::optional<std::string> fault;
  std::string where;
  std::vector<ShortId> bases;  // that were met on the way down
  unsigned depth = 0;
  for (Location at = there;;) {
    if (const auto damage = damage_at(at)) fault = where + *damage;
    if (!at.base) break;
    const ObjectId base = *at.base;
    if (std::find(bases.begin(), bases.end(), ShortId(base)) != bases.end()) return endless(found_.loops);
    if (++depth > kMostChain) return endless(found_.too_long);
    if (const auto known = sound_bases_.find(ShortId(base)); known != sound_bases_.end()) {
      depth += known->second;
      if (depth > kMostChain) return endless(found_.too_long);
      break;
    }
    KIN_TRY_ASSIGN(const std::optional<Location> below, repository_.find_location(base));
    if (!below) {
      found_.missing_bases += missing_.insert(ShortId(base)).second;
      return std::optional(fmt::format("base {} is missing", base.short_hex()));
    }
    where = fmt::format("base {}: ", base.short_hex());
    bases.emplace_back(base);
    at = *below;
  }
  if (fault) return fault;
  found_.longest = std::max(found_.longest, depth);
  for (const ShortId& base : bases) sound_bases_.emplace(base, static_cast<std::uint8_t>(--depth));
  return std::optional<std::string>();
}

}  // namespace kin::store
