#include "cmd/tree_walk.h"

namespace kin::cmd {
namespace {

struct DiffOptions {
  std::string a, b;
  bool metadata = false;
};

struct Counts {
  std::uint64_t files = 0, directories = 0, others = 0, bytes = 0;
};

// What a restore would bring back. Inode and ctime are not: they differ after every copy and say nothing.
bool same_metadata(const Node& a, const Node& b) {
  const auto fields = [](const Node& node) {
    return std::tie(node.mode, node.uid, node.gid, node.user, node.group, node.mtime, node.attributes);
  };
  return fields(a) == fields(b);
}

// Of two that are no directories and have the same type.
bool same_content(const Node& a, const Node& b) {
  return a.size == b.size && a.content == b.content && a.target == b.target &&
         a.device_number == b.device_number;
}

class Diff {
 public:
  Diff(Context& context, ObjectReader& reader, bool metadata)
      : context_(context), reader_(reader), metadata_(metadata) {}

  // Both trees in step: one leaf of each per level is in memory.
  Result<void> compare_trees(const ObjectId& a, const ObjectId& b, std::string path) {
    if (a == b) return {};
    std::vector<Level> levels;
    levels.push_back({{reader_, a}, {reader_, b}, path.size()});
    while (!levels.empty()) {
      if (context_.stop().stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
      Level& level = levels.back();
      path.resize(level.path_size);
      KIN_TRY(level.a.fill());
      KIN_TRY(level.b.fill());
      if (!level.a.node && !level.b.node) {
        levels.pop_back();
        continue;
      }
      const bool has_a = level.a.node && (!level.b.node || level.a.node->name <= level.b.node->name);
      const bool has_b = level.b.node && (!level.a.node || level.b.node->name <= level.a.node->name);
      path += "/" + (has_a ? level.a.node : level.b.node)->name;
      const std::optional<Node> old_node = has_a ? std::exchange(level.a.node, std::nullopt) : std::nullopt;
      const std::optional<Node> new_node = has_b ? std::exchange(level.b.node, std::nullopt) : std::nullopt;
      KIN_TRY_ASSIGN(const bool deeper, compare_nodes(old_node, new_node, path));
      KIN_TRY(context_.still_heard());
      if (deeper) levels.push_back({{reader_, old_node->subtree}, {reader_, new_node->subtree}, path.size()});
    }
    return {};
  }

  // True: both are directories, and something below them differs.
  Result<bool> compare_nodes(const std::optional<Node>& a, const std::optional<Node>& b,
                             const std::string& path) {
    if (!a || !b) {
      KIN_TRY(one_sided(a ? '-' : '+', a ? *a : *b, path));
      return false;
    }
    if (a->type != b->type) {
      report('T', *b, path);
      KIN_TRY(only_below(removed_, '-', *a, path));
      KIN_TRY(only_below(added_, '+', *b, path));
      return false;
    }
    const bool directory = a->type == NodeType::directory;
    if (!directory && !same_content(*a, *b)) {
      report('M', *b, path);
      if (a->type == NodeType::file) ++changed_files_;
      removed_.bytes += a->size;
      added_.bytes += b->size;
    } else if (metadata_ && !same_metadata(*a, *b)) {
      report('U', *b, path);
    }
    return directory && a->subtree != b->subtree;
  }

  void summarize(const TreePlace& a, const TreePlace& b) {
    context_.print(fmt::format("\nFiles:   {:>8} new, {:>8} removed, {:>8} changed", grouped(added_.files),
                               grouped(removed_.files), grouped(changed_files_)));
    context_.print(fmt::format("Dirs:    {:>8} new, {:>8} removed", grouped(added_.directories),
                               grouped(removed_.directories)));
    if (added_.others + removed_.others > 0)
      context_.print(
          fmt::format("Others:  {:>8} new, {:>8} removed", grouped(added_.others), grouped(removed_.others)));
    context_.print(
        fmt::format("Added:   {} (size of new files, and of changed ones after)", human_bytes(added_.bytes)));
    context_.print(fmt::format("Removed: {} (size of removed files, and of changed ones before)",
                               human_bytes(removed_.bytes)));
    const auto counts_json = [](const Counts& counts) {
      return Json{{"files", counts.files},
                  {"dirs", counts.directories},
                  {"others", counts.others},
                  {"bytes", counts.bytes}};
    };
    context_.json("statistics", {{"source_snapshot", a.snapshot.id.hex()},
                                 {"target_snapshot", b.snapshot.id.hex()},
                                 {"changed_files", changed_files_},
                                 {"added", counts_json(added_)},
                                 {"removed", counts_json(removed_)}});
  }

 private:
  struct Side {
    Side(ObjectReader& reader, const ObjectId& tree) : cursor(reader, tree) {}
    Result<void> fill() {
      if (!node) {
        KIN_TRY_ASSIGN(node, cursor.next());
      }
      return {};
    }
    TreeCursor cursor;
    std::optional<Node> node;
  };
  struct Level {
    Side a, b;
    std::size_t path_size;
  };

  void report(char modifier, const Node& node, const std::string& path) {
    const std::string shown = node.type == NodeType::directory ? path + "/" : path;
    context_.print_always(fmt::format("{} {}", modifier, printable(shown)));
    if (!context_.options.json) return;
    Json fields{{"modifier", std::string(1, modifier)}};
    set_path(fields, "path", shown);
    context_.json("change", std::move(fields));
  }

  static void count(Counts& counts, const Node& node) {
    ++(node.type == NodeType::file        ? counts.files
       : node.type == NodeType::directory ? counts.directories
                                          : counts.others);
    counts.bytes += node.size;
  }

  Result<void> one_sided(char sign, const Node& node, const std::string& path) {
    report(sign, node, path);
    return only_below(sign == '+' ? added_ : removed_, sign, node, path);
  }

  // Counts the node too, which the caller has reported.
  Result<void> only_below(Counts& counts, char sign, const Node& node, const std::string& path) {
    count(counts, node);
    if (node.type != NodeType::directory) return {};
    TreeVisitor visitor;
    visitor.enter = [&](const Node& below, const std::string& below_path) -> Result<bool> {
      report(sign, below, below_path);
      count(counts, below);
      KIN_TRY(context_.still_heard());
      return true;
    };
    return walk_tree(reader_, node.subtree, path, visitor, context_.stop());
  }

  Context& context_;
  ObjectReader& reader_;
  const bool metadata_;
  Counts added_, removed_;
  std::uint64_t changed_files_ = 0;
};

Result<ExitCode> run_diff(Context& context, const DiffOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const TreePlace a, find_place(*repository, options.a, {}));
  KIN_TRY_ASSIGN(const TreePlace b, find_place(*repository, options.b, {}));
  const auto name = [](const TreePlace& place) {
    return place.snapshot.id.short_hex() + (place.path.empty() ? "" : ":" + printable(place.path));
  };
  context.print(fmt::format("comparing {} with {}:", name(a), name(b)));
  Diff diff(context, *repository, options.metadata);
  // The two places may have different names, so paths are told from there on; a single file is told by its
  // new one.
  if (a.node.type == NodeType::directory && b.node.type == NodeType::directory) {
    KIN_TRY(diff.compare_trees(a.node.subtree, b.node.subtree, ""));
  } else {
    KIN_TRY(diff.compare_nodes(a.node, b.node, b.path));
  }
  diff.summarize(a, b);
  return ExitCode::ok;
}

Action define_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  app.add_flag("--metadata", options->metadata,
               "also name what differs only in owner, mode, time or attributes (U)");
  app.add_option("A", options->a, "the older snapshot, or SNAPSHOT:PATH")->required();
  app.add_option("B", options->b, "the newer snapshot, or SNAPSHOT:PATH")->required();
  app.footer("Lines: + added, - removed, M content modified, T type changed, U metadata updated.");
  return [options](Context& context) { return run_diff(context, *options); };
}

}  // namespace

extern const Command kDiff{"diff", "show what changed between two snapshots", define_diff};

}  // namespace kin::cmd
