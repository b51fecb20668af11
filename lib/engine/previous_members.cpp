#include "lib/engine/previous_members.h"

#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

namespace kin {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;  // of names and extents, for each level of containers
constexpr std::size_t kMemberBytes = 128;    // that the maps take for each, about
constexpr std::size_t kReadBytes = 16;       // that reading a part counts for: there may be millions

}  // namespace

PreviousMembers::PreviousMembers(ObjectReader& reader, const std::optional<Extent>& container) {
  if (!container) return;
  const auto source = open_recipe(reader, *container);
  if (!source) return;
  RecipeReader recipe(**source);
  std::map<std::string, unsigned> seen;
  for (std::size_t bytes = 0; bytes < kMostBytes;) {
    auto part = recipe.next();
    if (!part || !*part) return;
    RecipePart& member = **part;
    bytes += kReadBytes;
    if (member.is_literal()) continue;
    const unsigned place = seen[member.name]++;
    if (member.name.empty() && place > 0) continue;
    bytes += 2 * member.name.size() + member.content.size() * sizeof(Extent) + kMemberBytes;
    members_.emplace(Place(std::move(member.name), place), std::move(member.content));
  }
}

std::vector<Extent> PreviousMembers::next(const std::string& name) {
  if (!members_.contains({name, 0})) return {};  // a container may have millions of other names
  const auto at = members_.find({name, asked_[name]++});
  return at == members_.end() ? std::vector<Extent>() : at->second;
}

std::optional<Extent> container_of(const std::vector<Extent>& content) {
  if (content.size() != 1 || content.front().kind != Extent::Kind::container) return std::nullopt;
  return content.front();
}

std::optional<ObjectId> data_at(const std::vector<Extent>& content, std::size_t place) {
  if (place >= content.size() || content[place].kind != Extent::Kind::data) return std::nullopt;
  return content[place].id;
}

}  // namespace kin
