#include "cmd/container_tree.h"

#include "formats/formats.h"
#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

namespace kin::cmd {
namespace {

// More are counted, and not told of: who made the recipes may have wanted them to be without end.
constexpr std::uint64_t kMostMembers = 1'000'000;

std::uint64_t size_of(const std::vector<Extent>& extents) {
  std::uint64_t size = 0;
  for (const Extent& extent : extents) size += extent.size;
  return size;
}

std::string coding_name(CodingId id) {
  if (id == CodingId::none) return "";
  const Coding* const coding = find_coding(formats::all(), id);
  return coding != nullptr ? coding->name : fmt::format("coding {}", static_cast<int>(id));
}

class Reading {
 public:
  Reading(Context& context, store::Repository& repository, ContainerTree& tree)
      : context_(context), repository_(repository), tree_(tree) {}

  Result<void> read(const Extent& container, int depth, std::string& type,
                    std::vector<ContainerMember>& members) {
    if (depth > kMostContainerDepth) return Error(ErrorCode::corrupt, "containers are nested too deep");
    KIN_TRY_ASSIGN(const auto bytes, open_recipe(repository_, container));
    RecipeReader recipe(*bytes);
    for (;;) {
      if (context_.stop().stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
      KIN_TRY_ASSIGN(const std::optional<RecipePart> part, recipe.next());
      type = recipe.type();
      if (!part) return {};
      if (part->is_literal()) {
        tree_.literal_bytes += part->literal.size();
        continue;
      }
      ContainerMember member{part->name,
                             coding_name(part->coding),
                             {},
                             size_of(part->content),
                             part->inline_corrections.size() + size_of(part->corrections),
                             {}};
      ++tree_.count;
      tree_.corrections += member.corrections;
      if (tree_.count > kMostMembers) continue;
      if (part->content.size() == 1 && part->content[0].kind == Extent::Kind::container)
        KIN_TRY(read(part->content[0], depth + 1, member.type, member.members));
      members.push_back(std::move(member));
    }
  }

 private:
  Context& context_;
  store::Repository& repository_;
  ContainerTree& tree_;
};

void print_members(Context& context, const std::vector<ContainerMember>& members, std::size_t indent,
                   std::size_t& left) {
  for (const ContainerMember& member : members) {
    if (left == 0) return;
    --left;
    std::string name = std::string(2 * indent, ' ') + (member.name.empty() ? "-" : printable(member.name));
    if (!member.members.empty()) name += ":";
    std::string line =
        fmt::format("{:<44} {:<17} {:<13} {}", name, member.coding.empty() ? "as it is" : member.coding,
                    human_bytes(member.size), member.coding.empty() ? "" : human_bytes(member.corrections));
    line.erase(line.find_last_not_of(' ') + 1);
    context.print_always(line);
    print_members(context, member.members, indent + 1, left);
  }
}

Json members_json(const std::vector<ContainerMember>& members) {
  Json out = Json::array();
  for (const ContainerMember& member : members) {
    Json fields{{"coding", member.coding.empty() ? "none" : member.coding},
                {"size", member.size},
                {"corrections_size", member.corrections}};
    set_path(fields, "name", member.name);
    if (!member.members.empty()) fields["members"] = members_json(member.members);
    if (!member.type.empty()) fields["type"] = printable(member.type);
    out.push_back(std::move(fields));
  }
  return out;
}

}  // namespace

Result<ContainerTree> container_tree(Context& context, store::Repository& repository,
                                     const Extent& container) {
  ContainerTree tree;
  KIN_TRY(Reading(context, repository, tree).read(container, 1, tree.type, tree.members));
  return tree;
}

void print_tree(Context& context, const ContainerTree& tree, std::size_t most) {
  context.print_always(fmt::format("{:<44} {:<17} {:<13} {}", "member", "coding", "size", "corrections"));
  std::size_t left = most;
  print_members(context, tree.members, 0, left);
  if (tree.count > most)
    context.print_always(fmt::format("and {} more (-v lists all)", grouped(tree.count - most)));
}

Json tree_json(const ContainerTree& tree) {
  return {{"type", printable(tree.type)},
          {"members", members_json(tree.members)},
          {"members_count", tree.count},
          {"literal_size", tree.literal_bytes},
          {"corrections_size", tree.corrections}};
}

}  // namespace kin::cmd
