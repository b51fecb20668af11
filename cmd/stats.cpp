#include "cmd/container_stats.h"
#include "cmd/lost_packs.h"
#include "cmd/stats_details.h"
#include "cmd/tree_walk.h"
#include "lib/container/content_source.h"

#include <set>
#include <unordered_map>

namespace kin::cmd {
namespace {

struct StatsOptions {
  store::SnapshotFilter filter;
  std::vector<std::string> ids;
  std::string mode;  // empty: the overview
  bool details = false;
};

struct StatsTotals {
  std::uint64_t files = 0, directories = 0, bytes = 0;
};

class Count {
 public:
  Count(Context& context, store::Repository& repository, const StatsOptions& options)
      : details(repository),
        containers(repository),
        context_(context),
        repository_(repository),
        counts_objects_(options.mode.empty() || options.mode == "raw-data"),
        counts_contents_(options.mode == "files-by-contents"),
        counts_details_(options.details) {}

  Result<void> add(const Snapshot& snapshot) {
    inodes_.clear();
    struct Entry {
      StatsTotals totals;
      std::uint64_t linked;
    };
    std::vector<Entry> entries;  // what it was at the start of each directory that the walk is in
    TreeVisitor visitor;
    visitor.object = [&](const ObjectId& id) {
      if (counts_objects_) add_metadata(id);
      return !failed_;
    };
    visitor.enter = [&](const Node& node, const std::string&) -> Result<bool> {
      if (node.type == NodeType::file) KIN_TRY(add_file(node));
      if (node.type != NodeType::directory) return false;
      ++totals.directories;
      if (totals.directories % 256 == 0)
        context_.progress(fmt::format("{} files, {}", grouped(totals.files), human_bytes(totals.bytes)));
      if (const auto known = known_.find(ShortId(node.subtree.bytes)); known != known_.end()) {
        totals.files += known->second.files;
        totals.directories += known->second.directories;
        totals.bytes += known->second.bytes;
        return false;
      }
      entries.push_back({totals, linked_});
      return true;
    };
    visitor.leave = [&](const Node& directory) {
      // Snapshots share most directories. Where hard links are, what one adds depends on what was before.
      const Entry& start = entries.back();
      if (start.linked == linked_)
        known_.emplace(
            ShortId(directory.subtree.bytes),
            StatsTotals{totals.files - start.totals.files, totals.directories - start.totals.directories,
                        totals.bytes - start.totals.bytes});
      entries.pop_back();
    };
    KIN_TRY(walk_tree(repository_, snapshot.tree, "", visitor, context_.stop()));
    if (failed_) return *failed_;
    return {};
  }

  StatsTotals totals;
  Distinct objects, contents;
  StorageDetails details;
  ContainerStats containers;

 private:
  // True if it was not counted before.
  bool add_metadata(const ObjectId& id, const char* type = kMetadataType) {
    const auto where = repository_.find_location(id);
    if (!where || !*where) return true;  // loading it fails next, and says so
    if (!objects.add(id.bytes, (*where)->size)) return false;
    if (!counts_details_) return true;
    if (auto added = details.add(id, type); !added) failed_ = std::move(added).error();
    return true;
  }

  Result<void> add_file(const Node& node) {
    ++totals.files;
    if (node.links > 1) ++linked_;
    if (node.links == 1 || inodes_.insert({node.device, node.inode, content_digest(node)}).second)
      totals.bytes += node.size;
    if (counts_contents_) contents.add(content_digest(node), node.size);
    if (!counts_objects_) return {};
    return for_each_object(repository_, node.content, [&](const Extent& extent) -> Result<bool> {
      // Of a list or recipe that was counted before, all that it leads to was.
      if (extent.kind == Extent::Kind::list) return add_metadata(extent.id);
      if (extent.kind == Extent::Kind::container) {
        const bool is_new = add_metadata(extent.id, kRecipeType);
        if (is_new && counts_details_) KIN_TRY(containers.add(extent));
        return is_new;
      }
      if (objects.add(extent.id.bytes, extent.size) && counts_details_)
        KIN_TRY(details.add(extent.id, suffix_of(node.name)));
      return true;
    });
  }

  Context& context_;
  store::Repository& repository_;
  const bool counts_objects_, counts_contents_, counts_details_;
  std::optional<Error> failed_;
  std::unordered_map<ShortId, StatsTotals, ShortIdHash> known_;
  std::set<std::tuple<std::uint64_t, std::uint64_t, Digest>> inodes_;  // with their content
  std::uint64_t linked_ = 0;                                           // files seen that have several names
};

Result<std::vector<store::StoredSnapshot>> chosen_snapshots(Context& context, store::Repository& repository,
                                                            const StatsOptions& options, bool& damaged) {
  if (options.ids.empty()) {
    return store::load_snapshots(repository, options.filter, [&](const Error& error) {
      context.warn(error.message());
      damaged = true;
    });
  }
  std::vector<store::StoredSnapshot> out;
  for (const std::string& id : options.ids) {
    KIN_TRY_ASSIGN(store::StoredSnapshot snapshot, store::find_snapshot(repository, id, options.filter));
    out.push_back(std::move(snapshot));
  }
  return out;
}

std::string ratio_text(std::uint64_t before, std::uint64_t after) {
  return after == 0 ? ""
                    : fmt::format(" ({:.2f}:1)", static_cast<double>(before) / static_cast<double>(after));
}

Result<ExitCode> run_stats(Context& context, const StatsOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  bool damaged = false;
  KIN_TRY_ASSIGN(const std::vector<store::StoredSnapshot> snapshots,
                 chosen_snapshots(context, *repository, options, damaged));
  Count count(context, *repository, options);
  for (const store::StoredSnapshot& snapshot : snapshots) {
    auto added = count.add(snapshot.snapshot);
    if (!added) return std::move(added).error().context("snapshot " + snapshot.id.short_hex());
  }
  KIN_TRY_ASSIGN(const std::vector<store::FileInfo> packs, repository->backend().list(store::FileKind::pack));
  std::uint64_t stored = 0;
  for (const store::FileInfo& pack : packs) stored += pack.size;
  context.progress("");

  Json fields{{"mode", options.mode.empty() ? "restore-size" : options.mode},
              {"snapshots_count", snapshots.size()}};
  const auto line = [&](const char* what, const std::string& value) {
    context.print_always(fmt::format("{:<18}{}", what, value));
  };
  line("Snapshots:", grouped(snapshots.size()));
  if (options.mode == "files-by-contents") {
    line("Distinct files:", grouped(count.contents.count()));
    line("Their size:", human_bytes(count.contents.bytes()));
    fields.update({{"total_file_count", count.contents.count()}, {"total_size", count.contents.bytes()}});
  } else if (options.mode != "raw-data") {
    line("Files:", grouped(count.totals.files));
    line("Directories:", grouped(count.totals.directories));
    line("Restore size:", human_bytes(count.totals.bytes));
    fields.update({{"total_file_count", count.totals.files},
                   {"total_directory_count", count.totals.directories},
                   {"total_size", count.totals.bytes}});
  }
  if (options.mode.empty() || options.mode == "raw-data") {
    line("Distinct objects:", grouped(count.objects.count()));
    line("Their size:", human_bytes(count.objects.bytes()));
    // The packs hold all snapshots, so only against all of them does a ratio mean anything.
    const store::SnapshotFilter& filter = options.filter;
    const bool all =
        options.ids.empty() && filter.hosts.empty() && filter.tags.empty() && filter.paths.empty();
    line("Stored:", fmt::format("{} in {} pack{}{}", human_bytes(stored), grouped(packs.size()),
                                packs.size() == 1 ? "" : "s", all ? "" : ", for all snapshots"));
    fields.update({{"total_object_count", count.objects.count()},
                   {"total_object_size", count.objects.bytes()},
                   {"stored_size", stored},
                   {"packs_count", packs.size()}});
    KIN_TRY_ASSIGN(const store::EncodingTable encodings, store::count_encodings(*repository));
    fields["encodings"] = encodings_json(encodings);
    if (options.mode == "raw-data") fields["total_size"] = count.objects.bytes();
    if (all && stored > 0) {
      const std::uint64_t size = options.mode.empty() ? count.totals.bytes : count.objects.bytes();
      const double ratio = static_cast<double>(size) / static_cast<double>(stored);
      line("Ratio:", fmt::format("{:.2f} bytes of {} for each byte stored", ratio,
                                 options.mode.empty() ? "files" : "objects"));
      fields["compression_ratio"] = ratio;
    }
    if (options.mode.empty())
      line("Deduplication:", fmt::format("{} of files are {} of distinct objects{}",
                                         human_bytes(count.totals.bytes), human_bytes(count.objects.bytes()),
                                         ratio_text(count.totals.bytes, count.objects.bytes())));
    store::EncodingTotals deltas, others;
    for (const auto& [key, totals] : encodings) {
      store::EncodingTotals& sum = key.second == store::BlockForm::delta ? deltas : others;
      sum.objects += totals.objects;
      sum.content_bytes += totals.content_bytes;
      sum.stored_bytes += totals.stored_bytes;
    }
    const auto encoded = [&](const char* what, const store::EncodingTotals& totals) {
      line(what,
           fmt::format("{} object{}, {} in {}{}{}", grouped(totals.objects), totals.objects == 1 ? "" : "s",
                       human_bytes(totals.content_bytes), human_bytes(totals.stored_bytes),
                       ratio_text(totals.content_bytes, totals.stored_bytes),
                       all ? "" : ", for all snapshots"));
    };
    encoded("As deltas:", deltas);
    encoded("Whole, in groups:", others);
    if (options.details) {
      print_encodings(context, encodings);
      count.details.print(context, count.objects);
      fields.update(count.details.json(count.objects));
      count.containers.print(context);
      fields["containers"] = count.containers.json();
      damaged = damaged || count.details.damaged();
    }
  }
  context.json("stats", std::move(fields));
  KIN_TRY_ASSIGN(const bool lost, warn_of_counted_packs(context, *repository));
  return damaged || lost ? ExitCode::corrupt : ExitCode::ok;
}

Action define_stats(CLI::App& app) {
  auto options = std::make_shared<StatsOptions>();
  add_filter_options(app, options->filter);
  CLI::Option* const mode =
      app.add_option(
             "--mode", options->mode,
             "count one thing only: the files as restored, the objects stored, or files of different content")
          ->check(CLI::IsMember({"restore-size", "raw-data", "files-by-contents"}));
  app.add_flag("--details", options->details,
               "also tables: by encoding, type of file, length of chains, and containers")
      ->excludes(mode);
  app.add_option("SNAPSHOT", options->ids, "only these (ids, their first digits, or 'latest')");
  return [options](Context& context) { return run_stats(context, *options); };
}

}  // namespace

extern const Command kStats{"stats", "count files, objects and bytes", define_stats};

}  // namespace kin::cmd
