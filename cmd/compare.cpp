// kin compare: two files, or two directories, by what is in them.
#include "cmd/file_options.h"
#include "lib/base/text.h"
#include "lib/engine/content_diff.h"
#include "lib/engine/delta_cost.h"
#include "lib/engine/equal_files.h"

#include <set>
#include <sys/stat.h>

namespace kin::cmd {
namespace {

struct CompareOptions {
  FileOptions files;
  std::string a, b;
};

// A row of what is printed for each kind of change.
struct KindRow {
  ContentChange::Kind kind;
  const char* name;
  char letter;
};
constexpr KindRow kKinds[] = {
    {ContentChange::Kind::equal, "equal", '='},     {ContentChange::Kind::changed, "changed", 'M'},
    {ContentChange::Kind::renamed, "renamed", 'R'}, {ContentChange::Kind::similar, "similar", 'S'},
    {ContentChange::Kind::only_a, "only_a", '-'},   {ContentChange::Kind::only_b, "only_b", '+'},
    {ContentChange::Kind::unknown, "unknown", '?'},
};

Result<bool> is_directory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_error("cannot read", path);
  return S_ISDIR(info.st_mode);
}

Result<ExitCode> compare_files(Context& context, const CompareOptions& options) {
  const auto detector = make_detector(options.files);
  KIN_TRY_ASSIGN(const auto a, FileContent::open(options.a, context.stop()));
  KIN_TRY_ASSIGN(const auto b, FileContent::open(options.b, context.stop()));
  KIN_TRY_ASSIGN(const bool equal, have_equal_content(options.a, options.b, context.stop()));
  KIN_TRY_ASSIGN(const Print print_a, detector->print(*a, options.a));
  KIN_TRY_ASSIGN(const Print print_b, detector->print(*b, options.b));
  KIN_TRY_ASSIGN(const auto index, detector->make_index(key_stores(context)));
  KIN_TRY(index->add(0, print_b));
  KIN_TRY_ASSIGN(const std::vector<Match> matches, index->find(print_a, {}));
  const Match match = equal ? Match{0, 1, 1} : matches.empty() ? Match{} : matches.front();
  DeltaCost cost;
  KIN_TRY_ASSIGN(const std::uint64_t delta, cost.of_files(options.a, options.b, context.stop()));
  if (equal)
    context.print_always("equal");
  else
    context.print_always(fmt::format("{} of the first is in the second, and {} of the second in the first",
                                     percent_text(match.similarity), percent_text(match.reverse)));
  if (!equal && (print_a.values.empty() || print_b.values.empty()))
    context.print(fmt::format("(too short or too uniform for {} to tell)", options.files.method));
  context.print(
      fmt::format("as a delta the second takes {} of {}", human_bytes(delta), human_bytes(b->size())));
  context.json("comparison", {{"equal", equal},
                              {"similarity", match.similarity},
                              {"reverse", match.reverse},
                              {"size_a", a->size()},
                              {"size_b", b->size()},
                              {"delta", delta}});
  return ExitCode::ok;
}

class DirectoryComparison {
 public:
  DirectoryComparison(Context& context, const CompareOptions& options)
      : context_(context), options_(options), detector_(make_detector(options.files)), skipped_(context) {}

  Result<ExitCode> run() {
    KIN_TRY_ASSIGN(const PrintedFiles a, gather(options_.a));
    KIN_TRY_ASSIGN(const PrintedFiles b, gather(options_.b));
    const auto names_a = names_below(a, options_.a), names_b = names_below(b, options_.b);
    KIN_TRY_ASSIGN(const auto index, detector_->make_index(key_stores(context_)));
    KIN_TRY_ASSIGN(const auto changes,
                   compare_by_content(
                       a, names_a, b, names_b, least_similarity(options_.files, *detector_), *index,
                       [this](const std::string& name) { return is_unknown(name); },
                       told({options_.a, options_.b}), context_.stop()));
    std::map<std::string, std::uint64_t> counts;
    for (const KindRow& row : kKinds) counts[row.name] = 0;
    for (const ContentChange& change : changes) {
      const KindRow& row = *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindRow& candidate) {
        return candidate.kind == change.kind;
      });
      ++counts[row.name];
      tell(change, row, change.a ? names_a[*change.a] : "", change.b ? names_b[*change.b] : "");
      KIN_TRY(context_.still_heard());
    }
    context_.print(fmt::format(
        "\n{} equal, {} changed, {} renamed, {} similar, {} only in the first, {} only in the second{}",
        grouped(counts["equal"]), grouped(counts["changed"]), grouped(counts["renamed"]),
        grouped(counts["similar"]), grouped(counts["only_a"]), grouped(counts["only_b"]),
        counts["unknown"] == 0 ? ""
                               : fmt::format(", {} that cannot be told, since one side could not be read",
                                             grouped(counts["unknown"]))));
    Json summary(counts);
    summary["skipped"] = skipped_.count();
    context_.json("summary", std::move(summary));
    return skipped_.exit_code();
  }

 private:
  Result<PrintedFiles> gather(const std::string& directory) {
    // "x/." walks what a link x leads to, and names stay those below it.
    KIN_TRY_ASSIGN(const WalkOptions sources, file_sources({directory + "/."}, options_.files));
    FileRules rules;
    KIN_TRY_ASSIGN(rules, file_rules(options_.files));
    if (options_.files.min_size.empty()) rules.least_bytes = 0;  // an empty file has a name as well
    KIN_TRY_ASSIGN(std::vector<ComparedFile> files,
                   find_files(sources, rules, told({directory}), context_.stop()));
    return print_files(std::move(files), *detector_, context_.jobs(), told({directory}), context_.stop());
  }

  // Also keeps the name, below the directory that it is in.
  OnSkippedFile told(std::vector<std::string> directories) {
    return [this, tell = skipped_.told(), directories](const std::string& path, const Error& error) {
      tell(path, error);
      const auto components = path_components(path);
      for (const std::string& directory : directories) {
        const auto above = path_components(directory);
        if (above.size() <= components.size() && std::equal(above.begin(), above.end(), components.begin()))
          unread_.insert(name_below(path, directory));
      }
    };
  }

  // The name itself, or a directory above it. An empty one is the directory that was given.
  bool is_unknown(const std::string& name) const {
    if (unread_.empty()) return false;
    if (unread_.contains("") || unread_.contains(name)) return true;
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
      if (unread_.contains(name.substr(0, at))) return true;
    return false;
  }

  static std::string name_below(const std::string& path, const std::string& directory) {
    const std::size_t skip = path_components(directory).size();
    const auto components = path_components(path);
    std::string name;
    for (std::size_t i = skip; i < components.size(); ++i) name += (i > skip ? "/" : "") + components[i];
    return name;
  }

  static std::vector<std::string> names_below(const PrintedFiles& files, const std::string& directory) {
    std::vector<std::string> out;
    for (const ComparedFile& file : files.files) out.push_back(name_below(file.path, directory));
    return out;
  }

  void tell(const ContentChange& change, const KindRow& row, const std::string& a, const std::string& b) {
    const bool has_similarity =
        change.kind == ContentChange::Kind::changed || change.kind == ContentChange::Kind::similar;
    if (change.kind != ContentChange::Kind::equal || context_.options.verbose > 0) {
      const std::string names = a.empty() || a == b ? printable(b)
                                : b.empty()         ? printable(a)
                                                    : printable(a) + " -> " + printable(b);
      context_.print_always(
          fmt::format("{} {}{}", row.letter,
                      has_similarity ? fmt::format("{:>5} ", percent_text(change.similarity)) : "", names));
    }
    Json fields{{"kind", row.name}};
    if (change.a) set_path(fields, "a", a);
    if (change.b) set_path(fields, "b", b);
    if (has_similarity) fields["similarity"] = change.similarity;
    context_.json("change", std::move(fields));
  }

  Context& context_;
  const CompareOptions& options_;
  const std::unique_ptr<Detector> detector_;
  SkippedFiles skipped_;
  std::set<std::string> unread_;  // names below the one directory or the other
};

Result<ExitCode> run_compare(Context& context, const CompareOptions& options) {
  KIN_TRY_ASSIGN(const bool a, is_directory(options.a));
  KIN_TRY_ASSIGN(const bool b, is_directory(options.b));
  if (a != b)
    return Error(ErrorCode::invalid_argument, "compare takes two files or two directories, not one of each");
  return a ? DirectoryComparison(context, options).run() : compare_files(context, options);
}

Action define_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  app.add_option("A", options->a, "a file or directory")->required();
  app.add_option("B", options->b, "another one of the same kind")->required();
  add_file_options(app, options->files);
  return [options](Context& context) { return run_compare(context, *options); };
}

}  // namespace

extern const Command kCompare{"compare", "compare two files or directories by content", define_compare};

}  // namespace kin::cmd
