#include "cmd/tree_walk.h"
#include "lib/engine/path_filter.h"

#include <unordered_set>

namespace kin::cmd {
namespace {

struct FindOptions {
  store::SnapshotFilter filter;
  std::vector<std::string> patterns, ids;
  std::string oldest, newest;
  bool ignore_case = false, long_lines = false;
};

class Query {
 public:
  static Result<Query> make(const FindOptions& options) {
    Query query;
    query.ignore_case_ = options.ignore_case;
    for (const std::string& text : options.patterns) {
      Pattern pattern{path_components(text), text.starts_with('/')};
      if (pattern.components.empty())
        return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a pattern", printable(text)));
      query.names_only_ &= pattern.components.size() == 1 && !pattern.anchored;
      query.patterns_.push_back(std::move(pattern));
    }
    if (!options.oldest.empty()) {
      KIN_TRY_ASSIGN(query.oldest_, parse_time(options.oldest));
    }
    if (!options.newest.empty()) {
      KIN_TRY_ASSIGN(query.newest_, parse_time(options.newest));
    }
    return query;
  }

  // If so, what matches in a tree does not depend on where the tree is.
  bool names_only() const { return names_only_; }

  bool matches(const Node& node, const std::string& path) const {
    if ((oldest_ && node.mtime < *oldest_) || (newest_ && node.mtime > *newest_)) return false;
    std::vector<std::string> components;  // costly, and mostly not needed
    for (const Pattern& pattern : patterns_) {
      if (pattern.components.size() == 1 && !pattern.anchored) {
        if (matches_pattern(pattern.components, {&node.name, 1}, ignore_case_, false)) return true;
        continue;
      }
      if (components.empty()) components = path_components(path);
      for (std::size_t start = 0; start < (pattern.anchored ? 1 : components.size()); ++start)
        // Who looks for a directory does not ask for all that is in it.
        if (matches_pattern(pattern.components, std::span(components).subspan(start), ignore_case_, false))
          return true;
    }
    return false;
  }

 private:
  struct Pattern {
    std::vector<std::string> components;
    bool anchored;
  };
  std::vector<Pattern> patterns_;
  std::optional<Timestamp> oldest_, newest_;
  bool ignore_case_ = false, names_only_ = true;
};

class Search {
 public:
  Search(Context& context, const FindOptions& options, Query query)
      : context_(context), options_(options), query_(std::move(query)) {}

  Result<void> run(store::Repository& repository, const store::StoredSnapshot& snapshot) {
    const std::uint64_t before = matches_;
    std::vector<std::uint64_t> matches_at_entry;
    TreeVisitor visitor;
    visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
      if (query_.matches(node, path)) {
        if (matches_++ == before) announce(snapshot);
        context_.print_always(options_.long_lines ? long_line(node, path) : printable(path));
        if (context_.options.json) {
          Json fields = node_json(node, path);
          fields["snapshot"] = snapshot.id.hex();
          context_.json("match", std::move(fields));
        }
        KIN_TRY(context_.still_heard());
      }
      const bool deeper = node.type == NodeType::directory && !barren_.contains(node.subtree);
      if (deeper) matches_at_entry.push_back(matches_);
      return deeper;
    };
    visitor.leave = [&](const Node& directory) {
      // The next snapshot mostly has the same directories: those without a match need no second look.
      if (query_.names_only() && matches_ == matches_at_entry.back()) barren_.insert(directory.subtree);
      matches_at_entry.pop_back();
    };
    return walk_tree(repository, snapshot.snapshot.tree, "", visitor, context_.stop());
  }

 private:
  void announce(const store::StoredSnapshot& snapshot) {
    context_.print(fmt::format("{}Found matching entries in snapshot {} from {}",
                               std::exchange(announced_, true) ? "\n" : "", snapshot.id.short_hex(),
                               local_time(snapshot.snapshot.time)));
  }

  Context& context_;
  const FindOptions& options_;
  const Query query_;
  std::uint64_t matches_ = 0;
  bool announced_ = false;
  std::unordered_set<ObjectId, ObjectIdHash> barren_;
};

Result<ExitCode> run_find(Context& context, const FindOptions& options) {
  KIN_TRY_ASSIGN(Query query, Query::make(options));
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  bool damaged = false;
  const auto on_damage = [&](const Error& error) {
    context.warn(error.message());
    damaged = true;
  };
  std::vector<store::StoredSnapshot> snapshots;
  for (const std::string& id : options.ids) {
    KIN_TRY_ASSIGN(store::StoredSnapshot snapshot, store::find_snapshot(*repository, id, options.filter));
    snapshots.push_back(std::move(snapshot));
  }
  if (options.ids.empty()) {
    KIN_TRY_ASSIGN(snapshots, store::load_snapshots(*repository, options.filter, on_damage));
  }
  Search search(context, options, std::move(query));
  for (const store::StoredSnapshot& snapshot : snapshots) {
    auto searched = search.run(*repository, snapshot);
    KIN_TRY(context.still_heard());
    if (searched) continue;
    if (searched.error().code() == ErrorCode::cancelled) return std::move(searched).error();
    on_damage(std::move(searched).error().context("snapshot " + snapshot.id.short_hex()));
  }
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Action define_find(CLI::App& app) {
  auto options = std::make_shared<FindOptions>();
  add_filter_options(app, options->filter);
  app.add_option("-s,--snapshot", options->ids, "search only this snapshot")->allow_extra_args(false);
  app.add_flag("-i,--ignore-case", options->ignore_case, "a matches A");
  app.add_flag("-l,--long", options->long_lines, "mode, user, group, size and time too");
  app.add_option("-O,--oldest", options->oldest, "only what was modified at this time or later");
  app.add_option("-N,--newest", options->newest, "only what was modified at this time or earlier");
  app.add_option("PATTERN", options->patterns,
                 "shell patterns of a name, or of a path ('/' within; '**' is any number of directories)")
      ->required();
  return [options](Context& context) { return run_find(context, *options); };
}

}  // namespace

extern const Command kFind{"find", "search the snapshots for files", define_find};

}  // namespace kin::cmd
