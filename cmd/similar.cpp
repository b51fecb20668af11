// kin similar: the files, or stored objects, that are most like one file.
#include "cmd/file_options.h"
#include "cmd/object_origins.h"
#include "lib/base/text.h"
#include "lib/engine/delta_cost.h"
#include "lib/engine/equal_files.h"
#include "lib/engine/stored_kin.h"
#include "store/snapshots.h"

#include <algorithm>
#include <cstdlib>
#include <sys/stat.h>

namespace kin::cmd {
namespace {

// Names are looked for so long and no longer, unless asked for: snapshots have to be searched for them.
constexpr std::chrono::milliseconds kNameSearch{300};

struct SimilarOptions {
  FileOptions files;
  std::string file;
  std::size_t most = 10;
  bool no_delta = false, names = false;
};

std::string cost_text(const std::optional<std::uint64_t>& bytes) { return bytes ? human_bytes(*bytes) : "-"; }

class Similar {
 public:
  Similar(Context& context, const SimilarOptions& options)
      : context_(context), options_(options), skipped_(context) {}

  Result<ExitCode> run() {
    // One that the environment names is meant for other commands.
    const char* const usual = std::getenv("KIN_REPOSITORY");
    if (!options_.files.paths.empty() && context_.options.repository != (usual == nullptr ? "" : usual))
      return Error(ErrorCode::invalid_argument, "similar looks below paths or in a repository, not in both");
    KIN_TRY_ASSIGN(content_, FileContent::open(options_.file, context_.stop()));
    return options_.files.paths.empty() ? in_repository() : among_files();
  }

 private:
  Result<ExitCode> among_files();
  Result<ExitCode> in_repository();
  void head(const char* what) const {
    context_.print_always(fmt::format("{:>10} {:>12} {:>12}  {}", "similarity", "size", "delta", what));
  }
  void row(const std::string& similarity, std::uint64_t size, const std::optional<std::uint64_t>& delta,
           const std::string& name) const {
    context_.print_always(
        fmt::format("{:>10} {:>12} {:>12}  {}", similarity, human_bytes(size), cost_text(delta), name));
  }

  Context& context_;
  const SimilarOptions& options_;
  SkippedFiles skipped_;
  std::unique_ptr<FileContent> content_;
};

Result<ExitCode> Similar::among_files() {
  const auto detector = make_detector(options_.files);
  KIN_TRY_ASSIGN(const WalkOptions sources, file_sources(options_.files.paths, options_.files));
  KIN_TRY_ASSIGN(const FileRules rules, file_rules(options_.files));
  KIN_TRY_ASSIGN(const Print query, detector->print(*content_, options_.file));
  KIN_TRY_ASSIGN(std::vector<ComparedFile> found,
                 find_files(sources, rules, skipped_.told(), context_.stop()));
  struct stat own {};
  if (::stat(options_.file.c_str(), &own) == 0)
    std::erase_if(found, [&](const ComparedFile& file) {
      return file.device == own.st_dev && file.inode == own.st_ino;
    });
  KIN_TRY_ASSIGN(const PrintedFiles files,
                 print_files(std::move(found), *detector, context_.jobs(), skipped_.told(), context_.stop()));
  KIN_TRY_ASSIGN(const auto index, detector->make_index(key_stores(context_)));
  for (std::uint32_t at = 0; at < files.files.size(); ++at) KIN_TRY(index->add(at, files.prints[at]));
  FindLimits limits;
  limits.most_matches = options_.most;
  limits.least_similarity = least_similarity(options_.files, *detector);
  KIN_TRY_ASSIGN(std::vector<Match> matches, index->find(query, limits));
  const bool featureless = query.values.empty();
  if (featureless) {
    context_.print(fmt::format("{} is too short or too uniform for {}: only equal files are looked for",
                               printable(options_.file), options_.files.method));
    for (std::uint32_t at = 0; at < files.files.size() && matches.size() < options_.most; ++at) {
      if (files.prints[at] != query) continue;
      const auto equal = have_equal_content(options_.file, files.files[at].path, context_.stop());
      if (equal && *equal) matches.push_back({at, 1, 1});
    }
  }
  // Not those that have little of FILE, though they be contained in it.
  std::erase_if(matches, [&](const Match& match) { return match.similarity < limits.least_similarity; });
  const auto is_equal = [&](const Match& match) {
    if (files.prints[match.file].values != query.values) return false;
    return have_equal_content(options_.file, files.files[match.file].path, context_.stop()).value_or(false);
  };
  const auto first_other = std::stable_partition(matches.begin(), matches.end(), is_equal);
  if (!matches.empty()) head("path");
  DeltaCost cost;
  for (const Match& match : matches) {
    if (context_.stop().stop_requested()) return interrupted();
    const ComparedFile& file = files.files[match.file];
    const bool equal = &match - matches.data() < first_other - matches.begin();
    std::optional<std::uint64_t> delta;
    if (!options_.no_delta) {
      const auto bytes = cost.of_files(file.path, options_.file, context_.stop());
      if (context_.stop().stop_requested()) return interrupted();
      if (bytes) delta = *bytes;
    }
    row(equal ? "equal" : percent_text(match.similarity), file.size, delta, printable(file.path));
    Json fields{{"similarity", match.similarity}, {"equal", equal}, {"size", file.size}};
    if (delta) fields["delta"] = *delta;
    set_path(fields, "path", file.path);
    context_.json("similar_file", std::move(fields));
    KIN_TRY(context_.still_heard());
  }
  context_.json("summary", {{"files", files.files.size()},
                            {"bytes", files.bytes},
                            {"found", matches.size()},
                            {"skipped", skipped_.count()}});
  if (matches.empty())
    context_.print(
        fmt::format("none of {} files is like {}", grouped(files.files.size()), printable(options_.file)));
  return skipped_.exit_code();
}

Result<ExitCode> Similar::in_repository() {
  const FileOptions& files = options_.files;
  if (files.method != "features")
    return Error(ErrorCode::invalid_argument,
                 "a repository knows features only: give paths for other methods");
  if (!files.exclude.empty() || !files.suffixes.empty() || !files.min_size.empty() ||
      !files.max_size.empty() || files.one_file_system)
    return Error(ErrorCode::invalid_argument,
                 "a repository's objects have no names or places: --exclude, --suffix, --min-size, "
                 "--max-size and --one-file-system go with paths");
  KIN_TRY_ASSIGN(const auto repository, open_repository(context_));
  KIN_TRY(repository->fill_features(context_.stop()));
  if (repository->features_are_elsewhere())
    context_.warn(
        "another kin is using the feature store of this repository: nothing can be found meanwhile");
  KIN_TRY_ASSIGN(StoredKin kin, find_stored_kin(*repository, *content_, options_.most, context_.stop()));
  const auto similarity_of = [&kin](const auto& found) {
    return kin.features == 0 ? 0 : static_cast<double>(found.matches) / static_cast<double>(kin.features);
  };
  std::erase_if(kin.found, [&](const auto& found) {
    return !found.is_part && 100 * similarity_of(found) < files.min_similarity;
  });
  std::unordered_set<ObjectId, ObjectIdHash> wanted;
  for (const auto& found : kin.found) wanted.insert(found.id);
  Origins origins;
  bool damaged = false, complete = true;
  if (!wanted.empty()) {
    const auto until = options_.names ? std::chrono::steady_clock::time_point::max()
                                      : std::chrono::steady_clock::now() + kNameSearch;
    const std::size_t all = wanted.size();
    KIN_TRY_ASSIGN(origins, find_origins_until(context_, *repository, std::move(wanted), damaged, until));
    complete = origins.size() == all;
    head("stored object, and a file that has it");
  }
  DeltaCost cost;
  for (const auto& found : kin.found) {
    const double similarity = similarity_of(found);
    KIN_TRY_ASSIGN(const auto where, repository->find_location(found.id));
    if (!where) continue;  // it has gone since
    std::optional<std::uint64_t> delta;
    if (!options_.no_delta && !kin.only.empty()) {
      const auto base = repository->load(found.id);
      if (!base) {
        context_.warn(base.error().message());
        damaged = true;
      } else {
        KIN_TRY_ASSIGN(delta, cost.of(**base, kin.only));
      }
    }
    const auto origin = origins.find(found.id);
    const std::string path = origin == origins.end() ? "" : origin->second.path;
    row(found.is_part ? (kin.objects == 1 ? "equal" : "a part") : percent_text(similarity), where->size,
        delta, found.id.short_hex() + (path.empty() ? "" : "  " + printable(path)));
    Json fields{{"similarity", found.is_part && kin.objects == 1 ? 1.0 : similarity},
                {"stored", found.is_part},
                {"matches", found.matches},
                {"features", kin.features},
                {"size", where->size},
                {"id", found.id.hex()}};
    if (delta) fields["delta"] = *delta;
    if (!path.empty()) {
      set_path(fields, "path", path);
      fields["snapshot"] = origin->second.snapshot.hex();
    }
    context_.json("similar_object", std::move(fields));
    KIN_TRY(context_.still_heard());
  }
  context_.json("summary",
                {{"objects", kin.objects}, {"features", kin.features}, {"found", kin.found.size()}});
  if (kin.found.empty()) context_.print("nothing in the repository is like " + printable(options_.file));
  if (!complete && !options_.names)
    context_.print("(not all names were found in 0.3 s; --names looks longer)");
  return damaged ? ExitCode::incomplete : ExitCode::ok;
}

Action define_similar(CLI::App& app) {
  auto options = std::make_shared<SimilarOptions>();
  app.add_option("FILE", options->file, "the file to compare others with")->required();
  app.add_option("PATH", options->files.paths, "files and directories to look in (none: the repository)");
  add_file_options(app, options->files);
  app.add_option("-n,--most", options->most, "how many are shown (default 10)")->check(CLI::Range(1, 10000));
  app.add_flag("--no-delta", options->no_delta, "do not tell what a delta would take");
  app.add_flag("--names", options->names,
               "repository: look for names in all snapshots, however long that takes");
  return [options](Context& context) { return Similar(context, *options).run(); };
}

}  // namespace

extern const Command kSimilar{"similar", "find what is most like a file, among files or in a repository",
                              define_similar};

}  // namespace kin::cmd
