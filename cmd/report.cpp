// kin report: what each snapshot has brought and would free, and where the bytes are.
#include "cmd/content_costs.h"
#include "cmd/html_page.h"
#include "cmd/lost_packs.h"
#include "cmd/output_file.h"
#include "cmd/snapshot_costs.h"
#include "cmd/snapshot_options.h"
#include "cmd/svg_plots.h"
#include "cmd/version.h"

#include <algorithm>

namespace kin::cmd {
namespace {

struct ReportOptions {
  store::SnapshotFilter filter;
  std::string snapshot = "latest";
  std::size_t top = 10;
  std::string html;
  bool csv = false;
};

constexpr std::size_t kMostParts = 60;

class Report {
 public:
  Report(Context& context, store::Repository& repository, const ReportOptions& options)
      : context_(context),
        repository_(repository),
        options_(options),
        costs_(repository),
        content_(repository, options.top) {}

  Result<bool> gather();  // true: there was damage
  void print() const;
  void print_csv() const;
  Json json() const;
  std::string page() const;

 private:
  using Order = ContentCosts::Order;

  void print_top(const char* title, const std::vector<ContentCosts::Named>& rows) const;
  static Json top_json(const std::vector<ContentCosts::Named>& rows, const char* key);

  Context& context_;
  store::Repository& repository_;
  const ReportOptions& options_;
  std::vector<store::StoredSnapshot> snapshots_;
  std::optional<store::StoredSnapshot> chosen_;  // whose content is told of
  SnapshotCosts costs_;
  ContentCosts content_;
};

// What its files had that earlier snapshots did not bring.
std::uint64_t shared_bytes(const Snapshot& snapshot, const SnapshotCosts::Row& row) {
  const std::uint64_t brought = row.added.content - row.metadata.content;
  return snapshot.summary.bytes - std::min(snapshot.summary.bytes, brought);
}

Result<bool> Report::gather() {
  bool damaged = false;
  KIN_TRY_ASSIGN(snapshots_, store::load_snapshots(repository_, options_.filter, [&](const Error& error) {
                   context_.warn(error.message());
                   damaged = true;
                 }));
  for (const store::StoredSnapshot& snapshot : snapshots_) {
    context_.progress(fmt::format("snapshot {} of {}", costs_.rows().size() + 1, snapshots_.size()));
    if (auto added = costs_.add(snapshot.snapshot, context_.stop()); !added)
      return std::move(added).error().context("snapshot " + snapshot.id.short_hex());
  }
  KIN_TRY(costs_.finish());
  if (!snapshots_.empty()) {
    KIN_TRY_ASSIGN(chosen_, store::find_snapshot(repository_, options_.snapshot, options_.filter));
    context_.progress("snapshot " + chosen_->id.short_hex());
    if (auto added = content_.add(chosen_->snapshot, context_.stop()); !added)
      return std::move(added).error().context("snapshot " + chosen_->id.short_hex());
  }
  context_.progress("");
  return damaged;
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void Report::print() const {
  context_.print_always(fmt::format("{:<8}  {:<16} {:>13} {:>13} {:>13} {:>13} {:>13}", "snapshot", "time",
                                    "files", "shared", "added", "stored", "would free"));
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < snapshots_.size(); ++i) {
    const Snapshot& snapshot = snapshots_[i].snapshot;
    const SnapshotCosts::Row& row = costs_.rows()[i];
    stored += row.added.stored;
    context_.print_always(
        fmt::format("{:<8}  {:<16} {:>13} {:>13} {:>13} {:>13} {:>13}", snapshots_[i].id.short_hex(),
                    local_time(snapshot.time).substr(0, 16), human_bytes(snapshot.summary.bytes),
                    human_bytes(shared_bytes(snapshot, row)), human_bytes(row.added.content),
                    human_bytes(row.added.stored), human_bytes(row.frees.stored)));
  }
  const SnapshotCosts::Sizes& bases = costs_.bases_only();
  context_.print_always("");
  context_.print_always(fmt::format(
      "{} snapshot{} take{} {}{}", grouped(snapshots_.size()), snapshots_.size() == 1 ? "" : "s",
      snapshots_.size() == 1 ? "s" : "", human_bytes(stored + bases.stored),
      bases.objects == 0
          ? ""
          : fmt::format("; {} of it for objects that are only bases", human_bytes(bases.stored))));
  if (!chosen_) return;
  context_.print_always("");
  context_.print_always(fmt::format("snapshot {}: {} files, {} in {}, {}", chosen_->id.short_hex(),
                                    grouped(content_.all().files), human_bytes(content_.all().bytes),
                                    human_bytes(content_.all().stored),
                                    percent_text(content_.all().stored, content_.all().bytes)));
  print_top("directories that take most", content_.directories(Order::stored));
  print_top("types that take most", content_.types(Order::stored));
  print_top("files that take most", content_.files(Order::stored));
  print_top("directories that save most", content_.directories(Order::saved));
  print_top("types that save most", content_.types(Order::saved));
  print_top("files that save most", content_.files(Order::saved));
}

void Report::print_top(const char* title, const std::vector<ContentCosts::Named>& rows) const {
  if (rows.empty()) return;
  context_.print_always("");
  context_.print_always(fmt::format("{:>12} {:>12} {:>12}  {}", "bytes", "stored", "saved", title));
  for (const ContentCosts::Named& row : rows)
    context_.print_always(fmt::format("{:>12} {:>12} {:>12}  {}", human_bytes(row.tally.bytes),
                                      human_bytes(row.tally.stored), human_bytes(row.tally.saved()),
                                      printable(row.name)));
}

// The snapshots: what a spreadsheet can plot.
void Report::print_csv() const {
  std::ostream& out = context_.raw_out();
  out << "snapshot,time,files,bytes,shared,added,added_stored,delta,delta_stored,would_free,total_stored\n";
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < snapshots_.size(); ++i) {
    const Snapshot& snapshot = snapshots_[i].snapshot;
    const SnapshotCosts::Row& row = costs_.rows()[i];
    stored += row.added.stored;
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", snapshots_[i].id.hex(), iso_time(snapshot.time),
                       snapshot.summary.files, snapshot.summary.bytes, shared_bytes(snapshot, row),
                       row.added.content, row.added.stored, row.deltas.content, row.deltas.stored,
                       row.frees.stored, stored);
  }
}

Json sizes_json(const SnapshotCosts::Sizes& sizes) {
  return {{"objects", sizes.objects}, {"size", sizes.content}, {"stored_size", sizes.stored}};
}

Json Report::top_json(const std::vector<ContentCosts::Named>& rows, const char* key) {
  Json out = Json::array();
  for (const ContentCosts::Named& row : rows) {
    Json entry{{"files", row.tally.files}, {"size", row.tally.bytes}, {"stored_size", row.tally.stored}};
    set_path(entry, key, row.name);
    out.push_back(std::move(entry));
  }
  return out;
}

Json Report::json() const {
  Json rows = Json::array();
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < snapshots_.size(); ++i) {
    const SnapshotCosts::Row& row = costs_.rows()[i];
    stored += row.added.stored;
    Json entry = snapshot_json(snapshots_[i]);
    entry.update({{"added", sizes_json(row.added)},
                  {"deltas", sizes_json(row.deltas)},
                  {"metadata", sizes_json(row.metadata)},
                  {"shared_size", shared_bytes(snapshots_[i].snapshot, row)},
                  {"would_free", sizes_json(row.frees)},
                  {"total_stored_size", stored}});
    rows.push_back(std::move(entry));
  }
  Json out{{"snapshots", std::move(rows)}, {"bases_only", sizes_json(costs_.bases_only())}};
  if (!chosen_) return out;
  const auto both = [&](const auto& list, const char* key) {
    return Json{{"by_stored_size", top_json(list(Order::stored), key)},
                {"by_saved_size", top_json(list(Order::saved), key)}};
  };
  out["content"] = {
      {"snapshot", chosen_->id.hex()},
      {"files", content_.all().files},
      {"size", content_.all().bytes},
      {"stored_size", content_.all().stored},
      {"top_directories", both([&](Order order) { return content_.directories(order); }, "path")},
      {"top_types", both([&](Order order) { return content_.types(order); }, "type")},
      {"top_files", both([&](Order order) { return content_.files(order); }, "path")}};
  return out;
}

std::string Report::page() const {
  HtmlPage page("What the snapshots in " + repository_location(context_) + " take");
  page.heading("Snapshots");
  std::uint64_t largest = 1, stored = 0;
  for (const SnapshotCosts::Row& row : costs_.rows()) stored += row.added.stored;
  largest = std::max(largest, stored);
  for (const store::StoredSnapshot& snapshot : snapshots_)
    largest = std::max(largest, snapshot.snapshot.summary.bytes);
  const auto part = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(largest);
  };
  Curve sizes{"size of the files", {}}, growth{"stored, with all before", {}};
  Axis time{"snapshots, oldest first", {}}, size{"size", {}};
  for (int quarter = 0; quarter <= 4; ++quarter)
    size.marks.emplace_back(quarter / 4.0, human_bytes(largest / 4 * static_cast<std::uint64_t>(quarter)));
  std::vector<std::vector<HtmlPage::Cell>> rows;
  stored = 0;
  const std::size_t last = snapshots_.size() - std::min<std::size_t>(1, snapshots_.size());
  for (std::size_t i = 0; i < snapshots_.size(); ++i) {
    const Snapshot& snapshot = snapshots_[i].snapshot;
    const SnapshotCosts::Row& row = costs_.rows()[i];
    stored += row.added.stored;
    const double x = last == 0 ? 0 : static_cast<double>(i) / static_cast<double>(last);
    sizes.points.emplace_back(x, part(snapshot.summary.bytes));
    growth.points.emplace_back(x, part(stored));
    if (i == 0 || i == last) time.marks.emplace_back(x, local_time(snapshot.time).substr(0, 10));
    rows.push_back({HtmlPage::text(snapshots_[i].id.short_hex()),
                    HtmlPage::text(local_time(snapshot.time).substr(0, 16)),
                    HtmlPage::bytes(snapshot.summary.bytes), HtmlPage::bytes(shared_bytes(snapshot, row)),
                    HtmlPage::bytes(row.added.content), HtmlPage::bytes(row.added.stored),
                    HtmlPage::bytes(row.deltas.stored), HtmlPage::bytes(row.frees.stored)});
  }
  if (snapshots_.size() > 1)
    page.plot(curves_plot({"growth-plot", "What the files are, and what the repository takes"}, time, size,
                          {sizes, growth}));
  page.table("snapshots", "What each has, has brought and would free",
             {"snapshot", "time", "size", "shared", "added", "stored", "as deltas", "would free"}, rows);
  if (costs_.bases_only().objects > 0)
    page.paragraph(fmt::format("{} are stored for objects that are only bases of others.",
                               human_bytes(costs_.bases_only().stored)));
  if (chosen_) {
    page.heading(fmt::format("Snapshot {}", chosen_->id.short_hex()));
    page.paragraph(fmt::format("{} files, {} in {}.", grouped(content_.all().files),
                               human_bytes(content_.all().bytes), human_bytes(content_.all().stored)));
    std::vector<Area> areas;
    for (const ContentCosts::Named& directory : content_.parts(kMostParts))
      areas.push_back(
          {directory.name, human_bytes(directory.tally.stored), static_cast<double>(directory.tally.stored)});
    if (!areas.empty()) page.plot(treemap_plot({"directories-plot", "Directories by what they take"}, areas));
    const auto top = [&](const char* id, const char* caption, const std::vector<ContentCosts::Named>& list) {
      std::vector<std::vector<HtmlPage::Cell>> lines;
      for (const ContentCosts::Named& row : list)
        lines.push_back({HtmlPage::text(row.name), HtmlPage::number(row.tally.files),
                         HtmlPage::bytes(row.tally.bytes), HtmlPage::bytes(row.tally.stored),
                         HtmlPage::bytes(row.tally.saved())});
      if (!lines.empty()) page.table(id, caption, {"", "files", "size", "stored", "saved"}, lines);
    };
    top("directories-stored", "Directories that take most", content_.directories(Order::stored));
    top("types-stored", "Types that take most", content_.types(Order::stored));
    top("files-stored", "Files that take most", content_.files(Order::stored));
    top("directories-saved", "Directories that save most", content_.directories(Order::saved));
    top("types-saved", "Types that save most", content_.types(Order::saved));
    top("files-saved", "Files that save most", content_.files(Order::saved));
  }
  return page.finish(fmt::format("kin {} report, {}", kVersion, local_time(now())));
}

Result<ExitCode> run_report(Context& context, const ReportOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  std::unique_ptr<OutputFile> page;
  if (!options.html.empty()) {  // now, and not when all the work is done
    KIN_TRY_ASSIGN(page, OutputFile::open(context, options.html, {}));
  }
  Report report(context, *repository, options);
  KIN_TRY_ASSIGN(bool damaged, report.gather());
  if (page) KIN_TRY(page->finish(report.page()));
  const bool told = page && page->is_stdout();
  if (!told && options.csv) {
    report.print_csv();
  } else if (!told) {
    report.print();
    context.json("report", report.json());
  }
  KIN_TRY(repository->find_lost_packs());
  if (const std::string lost = lost_packs_text(*repository); !lost.empty()) {
    context.warn(lost +
                 ": what was in there is counted, and may be lost (kin check --read-data names the files)");
    damaged = true;
  }
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Action define_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  add_filter_options(app, options->filter);
  app.add_option("SNAPSHOT", options->snapshot, "the one whose directories, types and files are told of")
      ->capture_default_str();
  app.add_option("--top", options->top, "how many of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--csv", options->csv, "the snapshots as a table for spreadsheets, and nothing else");
  app.add_option("--html", options->html, "also write a page with plots to this file");
  return [options](Context& context) { return run_report(context, *options); };
}

}  // namespace

extern const Command kReport{"report", "tell what snapshots take and would free, and where the bytes are",
                             define_report};

}  // namespace kin::cmd
