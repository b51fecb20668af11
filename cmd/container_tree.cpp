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

struct ContainerMember {
  std::string name;    // empty if the format has none
  std::string coding;  // how it stood there; empty: as it is
  std::string type;    // if it was opened in turn
  std::uint64_t size = 0;
  std::uint64_t corrections = 0;  // bytes
};

// Hears of the members in order, and of those within a member between its begin and its end.
class MemberSink {
 public:
  virtual ~MemberSink() = default;
  // False: it has heard enough, and nothing more is read.
  virtual bool begin(const ContainerMember& member) = 0;
  virtual void end() = 0;
};

class Reading {
 public:
  Reading(Context& context, store::Repository& repository, ContainerTree& tree, MemberSink* sink)
      : context_(context), repository_(repository), tree_(tree), sink_(sink) {}

  Result<void> run() {
    KIN_TRY_ASSIGN(const auto bytes, open_recipe(repository_, tree_.container));
    RecipeReader recipe(*bytes);
    KIN_TRY_ASSIGN(std::optional<RecipePart> part, recipe.next());
    tree_.type = recipe.type();
    return read(recipe, std::move(part), 1);
  }

 private:
  // From `part` on.
  Result<void> read(RecipeReader& recipe, std::optional<RecipePart> part, int depth) {
    while (part && !enough_) {
      if (context_.stop().stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
      KIN_TRY(context_.still_heard());
      if (part->is_literal())
        tree_.literal_bytes += part->literal.size();
      else
        KIN_TRY(read_member(*part, depth));
      KIN_TRY_ASSIGN(part, recipe.next());
    }
    return {};
  }

  Result<void> read_member(const RecipePart& part, int depth) {
    ContainerMember member{part.name,
                           coding_name(part.coding),
                           {},
                           size_of(part.content),
                           part.inline_corrections.size() + size_of(part.corrections)};
    ++tree_.count;
    tree_.corrections += member.corrections;
    if (tree_.count > kMostMembers) return {};
    if (part.content.size() != 1 || part.content[0].kind != Extent::Kind::container) {
      begin(member);
      end();
      return {};
    }
    if (depth >= kMostContainerDepth) return Error(ErrorCode::corrupt, "containers are nested too deep");
    KIN_TRY_ASSIGN(const auto bytes, open_recipe(repository_, part.content[0]));
    RecipeReader recipe(*bytes);
    KIN_TRY_ASSIGN(std::optional<RecipePart> first, recipe.next());
    member.type = recipe.type();
    begin(member);
    KIN_TRY(read(recipe, std::move(first), depth + 1));
    end();
    return {};
  }

  void begin(const ContainerMember& member) {
    if (sink_ != nullptr && !sink_->begin(member)) enough_ = true;
  }
  void end() {
    if (sink_ != nullptr) sink_->end();
  }

  Context& context_;
  store::Repository& repository_;
  ContainerTree& tree_;
  MemberSink* const sink_;
  bool enough_ = false;
};

class MemberLines : public MemberSink {
 public:
  MemberLines(Context& context, std::size_t most) : context_(context), left_(most) {}

  bool begin(const ContainerMember& member) override {
    if (left_ > 0) print(member);
    ++depth_;
    if (left_ > 0) --left_;
    return left_ > 0;
  }
  void end() override { --depth_; }

 private:
  void print(const ContainerMember& member) {
    std::string name = std::string(2 * depth_, ' ') + (member.name.empty() ? "-" : printable(member.name));
    if (!member.type.empty()) name += ":";
    std::string line =
        fmt::format("{:<44} {:<17} {:<13} {}", name, member.coding.empty() ? "as it is" : member.coding,
                    human_bytes(member.size), member.coding.empty() ? "" : human_bytes(member.corrections));
    line.erase(line.find_last_not_of(' ') + 1);
    context_.print_always(line);
  }

  Context& context_;
  std::size_t left_, depth_ = 0;
};

// The members of an array that was begun.
class MembersJson : public MemberSink {
 public:
  explicit MembersJson(JsonWriter& out) : out_(out) {}

  bool begin(const ContainerMember& member) override {
    if (!has_members_.empty() && !has_members_.back()) {
      out_.begin_array("members");
      has_members_.back() = true;
    }
    has_members_.push_back(false);
    Json fields{{"coding", member.coding.empty() ? "none" : member.coding},
                {"size", member.size},
                {"corrections_size", member.corrections}};
    set_path(fields, "name", member.name);
    if (!member.type.empty()) fields["type"] = printable(member.type);
    out_.begin_object();
    out_.fields(fields);
    return true;
  }
  void end() override {
    if (has_members_.back()) out_.end();
    has_members_.pop_back();
    out_.end();
  }

 private:
  JsonWriter& out_;
  std::vector<bool> has_members_;  // of each that was begun, so far
};

Result<void> tell_members(Context& context, store::Repository& repository, const ContainerTree& tree,
                          MemberSink& sink) {
  ContainerTree again;
  again.container = tree.container;
  return Reading(context, repository, again, &sink).run();
}

}  // namespace

Result<ContainerTree> container_tree(Context& context, store::Repository& repository,
                                     const Extent& container) {
  ContainerTree tree;
  tree.container = container;
  KIN_TRY(Reading(context, repository, tree, nullptr).run());
  return tree;
}

Result<void> print_tree(Context& context, store::Repository& repository, const ContainerTree& tree,
                        std::size_t most) {
  context.print_always(fmt::format("{:<44} {:<17} {:<13} {}", "member", "coding", "size", "corrections"));
  MemberLines lines(context, most);
  KIN_TRY(tell_members(context, repository, tree, lines));
  if (tree.count > most)
    context.print_always(fmt::format("and {} more (-v lists all)", grouped(tree.count - most)));
  return {};
}

Result<void> write_tree(Context& context, store::Repository& repository, const ContainerTree& tree,
                        JsonWriter& out) {
  out.begin_array("members");
  MembersJson members(out);
  KIN_TRY(tell_members(context, repository, tree, members));
  out.end();
  out.fields({{"type", printable(tree.type)},
              {"members_count", tree.count},
              {"literal_size", tree.literal_bytes},
              {"corrections_size", tree.corrections}});
  return {};
}

}  // namespace kin::cmd
