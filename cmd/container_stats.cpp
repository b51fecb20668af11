#include "cmd/container_stats.h"

#include "lib/base/text.h"
#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

#include <algorithm>

namespace kin::cmd {
namespace {

std::uint64_t total_size(const std::vector<Extent>& extents) {
  std::uint64_t size = 0;
  for (const Extent& extent : extents) size += extent.size;
  return size;
}

}  // namespace

Result<void> ContainerStats::add(const Extent& container) {
  KIN_TRY_ASSIGN(const auto bytes, open_recipe(repository_, container));
  RecipeReader recipe(*bytes);
  Tally tally{1, container.size, 0, 0, 0};
  for (;;) {
    KIN_TRY_ASSIGN(const std::optional<RecipePart> part, recipe.next());
    if (!part) break;
    if (part->is_literal()) {
      tally.literals += part->literal.size();
      continue;
    }
    ++tally.members;
    tally.corrections += part->inline_corrections.size() + total_size(part->corrections);
  }
  Tally& sum = types_[recipe.type()];
  sum.containers += tally.containers;
  sum.bytes += tally.bytes;
  sum.members += tally.members;
  sum.corrections += tally.corrections;
  sum.literals += tally.literals;
  return {};
}

void ContainerStats::print(Context& context) const {
  if (types_.empty()) return;
  const auto row = [&](std::string_view type, std::string_view containers, std::string_view members,
                       std::string_view size, std::string_view corrections) {
    context.print_always(
        fmt::format("{:<18}{:>11} {:>13} {:>15} {:>15}", type, containers, members, size, corrections));
  };
  context.print_always("");
  row("Opened", "containers", "members", "their size", "corrections");
  for (const auto& [type, tally] : types_)
    row(printable(type), grouped(tally.containers), grouped(tally.members), human_bytes(tally.bytes),
        human_bytes(tally.corrections));
}

Json ContainerStats::json() const {
  Json out = Json::array();
  for (const auto& [type, tally] : types_)
    out.push_back({{"type", printable(type)},
                   {"containers", tally.containers},
                   {"size", tally.bytes},
                   {"members", tally.members},
                   {"corrections_size", tally.corrections},
                   {"literal_size", tally.literals}});
  return out;
}

}  // namespace kin::cmd
