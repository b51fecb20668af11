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
#include <set>

namespace kin::cmd {
namespace {

constexpr const char* kLatest = "latest";

struct ReportOptions {
  store::SnapshotFilter filter;
  std::string snapshot = kLatest;
  std::size_t top = 10;
  std::string html;
  bool csv = false;
};

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

  Result<void> leave_out(const ObjectId& id, Error error);
  std::string left_out_text() const;
  void print_top(const char* title, const std::vector<ContentCosts::Named>& rows) const;
  static Json top_json(const std::vector<ContentCosts::Named>& rows, const char* key);

  Context& context_;
  store::Repository& repository_;
  const ReportOptions& options_;
  // A snapshot that is told of.
  struct Line {
    store::StoredSnapshot snapshot;
    SnapshotCosts::Row row;
    std::uint64_t total_stored;  // by it and all before it
  };
  std::vector<Line> lines_;
  std::set<ObjectId> left_out_;                  // which cannot be read whole
  std::uint64_t stored_ = 0;                     // by all
  std::optional<store::StoredSnapshot> chosen_;  // whose content is told of
  SnapshotCosts costs_;
  ContentCosts content_;
};

// What its files have that earlier snapshots had, or other files of its own.
std::uint64_t shared_bytes(const Snapshot& snapshot, const SnapshotCosts::Row& row) {
  return snapshot.summary.bytes - std::min(snapshot.summary.bytes, row.new_file_bytes);
}

Result<bool> Report::gather() {
  bool damaged = false;
  if (options_.snapshot != kLatest) {
    KIN_TRY_ASSIGN(chosen_, store::find_snapshot(repository_, options_.snapshot, options_.filter));
  }
  // All of them, whatever is told of: what another needs would not be freed.
  KIN_TRY_ASSIGN(const std::vector<store::StoredSnapshot> all,
                 store::load_snapshots(repository_, {}, [&](const Error& error) {
                   context_.warn(error.message());
                   damaged = true;
                 }));
  for (const store::StoredSnapshot& snapshot : all) {
    context_.progress(fmt::format("snapshot {} of {}", costs_.rows().size() + 1, all.size()));
    if (auto added = costs_.add(snapshot.snapshot, context_.stop()); !added)
      KIN_TRY(leave_out(snapshot.id, std::move(added).error()));
  }
  KIN_TRY(costs_.finish());
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    stored += costs_.rows()[i].added.stored;
    if (!options_.filter.admits(all[i].snapshot)) continue;
    if (!left_out_.contains(all[i].id)) lines_.push_back({all[i], costs_.rows()[i], stored});
    if (options_.snapshot == kLatest) chosen_ = all[i];
  }
  stored_ = stored + costs_.bases_only().stored;
  if (chosen_ && !left_out_.contains(chosen_->id)) {
    context_.progress("snapshot " + chosen_->id.short_hex());
    if (auto added = content_.add(chosen_->snapshot, context_.stop()); !added)
      KIN_TRY(leave_out(chosen_->id, std::move(added).error()));
  }
  if (chosen_ && left_out_.contains(chosen_->id)) {
    std::erase_if(lines_, [&](const Line& line) { return line.snapshot.id == chosen_->id; });
    chosen_.reset();
  }
  context_.progress("");
  if (!left_out_.empty()) context_.warn(left_out_text());
  return damaged || !left_out_.empty();
}

// What is left of it counts all the same, as far as it was read.
Result<void> Report::leave_out(const ObjectId& id, Error error) {
  if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::not_found) return error;
  context_.warn(std::move(error).context("snapshot " + id.short_hex()).message());
  left_out_.insert(id);
  return {};
}

std::string Report::left_out_text() const {
  return fmt::format(
      "{} could not be read whole: what is told is without {}, and others may free less than is told",
      counted(left_out_.size(), "snapshot"), left_out_.size() == 1 ? "it" : "them");
}

std::string part_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void Report::print() const {
  constexpr const char* kLine = "{:<8}  {:<16} {:>13} {:>13} {:>13} {:>13} {:>13}";
  context_.print_always(fmt::format(fmt::runtime(kLine), "snapshot", "time", "size", "shared", "added",
                                    "stored", "would free"));
  for (const auto& [snapshot, row, total] : lines_)
    context_.print_always(fmt::format(
        fmt::runtime(kLine), snapshot.id.short_hex(), local_time(snapshot.snapshot.time).substr(0, 16),
        human_bytes(snapshot.snapshot.summary.bytes), human_bytes(shared_bytes(snapshot.snapshot, row)),
        human_bytes(row.added.content), human_bytes(row.added.stored), human_bytes(row.frees.stored)));
  const std::size_t count = costs_.rows().size();
  const SnapshotCosts::Sizes& bases = costs_.bases_only();
  context_.print_always("");
  context_.print_always(fmt::format(
      "{} take{} {}{}{}", counted(count, "snapshot"), count == 1 ? "s" : "",
      left_out_.empty() ? "" : "at least ", human_bytes(stored_),
      bases.objects == 0
          ? ""
          : fmt::format("; {} of it for objects that are only bases", human_bytes(bases.stored))));
  if (!chosen_) return;
  context_.print_always("");
  context_.print_always(fmt::format("snapshot {}: {}, {} in {}, {}", chosen_->id.short_hex(),
                                    counted(content_.all().files, "file"), human_bytes(content_.all().bytes),
                                    human_bytes(content_.all().stored),
                                    part_text(content_.all().stored, content_.all().bytes)));
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
  for (const auto& [snapshot, row, total] : lines_)
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", snapshot.id.hex(),
                       iso_time(snapshot.snapshot.time), snapshot.snapshot.summary.files,
                       snapshot.snapshot.summary.bytes, shared_bytes(snapshot.snapshot, row),
                       row.added.content, row.added.stored, row.deltas.content, row.deltas.stored,
                       row.frees.stored, total);
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
  for (const auto& [snapshot, row, total] : lines_) {
    Json entry = snapshot_json(snapshot);
    entry.update({{"added", sizes_json(row.added)},
                  {"deltas", sizes_json(row.deltas)},
                  {"metadata", sizes_json(row.metadata)},
                  {"shared_size", shared_bytes(snapshot.snapshot, row)},
                  {"would_free", sizes_json(row.frees)},
                  {"total_stored_size", total}});
    rows.push_back(std::move(entry));
  }
  Json left_out = Json::array();
  for (const ObjectId& id : left_out_) left_out.push_back(id.hex());
  Json out{{"snapshots", std::move(rows)},
           {"left_out", std::move(left_out)},
           {"bases_only", sizes_json(costs_.bases_only())}};
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
  std::uint64_t largest = 4;
  for (const Line& line : lines_)
    largest = std::max({largest, line.total_stored, line.snapshot.snapshot.summary.bytes});
  const auto part = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(largest);
  };
  Curve sizes{"size of the files", {}}, growth{"stored, with all before", {}};
  Axis time{"snapshots, oldest first", {}}, size{"bytes", {}};
  for (const std::uint64_t quarter : {0, 1, 2, 3, 4})
    size.marks.emplace_back(static_cast<double>(quarter) / 4, human_bytes(largest / 4 * quarter));
  std::vector<std::vector<HtmlPage::Cell>> rows;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Snapshot& snapshot = lines_[i].snapshot.snapshot;
    const SnapshotCosts::Row& row = lines_[i].row;
    const double x = lines_.size() == 1 ? 0 : static_cast<double>(i) / static_cast<double>(lines_.size() - 1);
    sizes.points.emplace_back(x, part(snapshot.summary.bytes));
    growth.points.emplace_back(x, part(lines_[i].total_stored));
    if (i == 0 || i + 1 == lines_.size()) time.marks.emplace_back(x, local_time(snapshot.time).substr(0, 10));
    rows.push_back({HtmlPage::text(lines_[i].snapshot.id.short_hex()),
                    HtmlPage::text(local_time(snapshot.time).substr(0, 16)),
                    HtmlPage::bytes(snapshot.summary.bytes), HtmlPage::bytes(shared_bytes(snapshot, row)),
                    HtmlPage::bytes(row.added.content), HtmlPage::bytes(row.added.stored),
                    HtmlPage::bytes(row.deltas.stored), HtmlPage::bytes(row.frees.stored),
                    HtmlPage::bytes(lines_[i].total_stored)});
  }
  if (lines_.size() > 1)
    page.plot(curves_plot({"growth-plot", "What the files are, and what the repository takes"}, time, size,
                          {sizes, growth}));
  page.table(
      "snapshots", "What each has, has brought and would free",
      {"snapshot", "time", "size", "shared", "added", "stored", "as deltas", "would free", "with all before"},
      rows);
  if (!left_out_.empty()) page.paragraph(left_out_text() + ".");
  if (costs_.bases_only().objects > 0)
    page.paragraph(fmt::format("{} are stored for objects that are only bases of others.",
                               human_bytes(costs_.bases_only().stored)));
  if (chosen_) {
    page.heading(fmt::format("Snapshot {}", chosen_->id.short_hex()));
    page.paragraph(fmt::format("{}, {} in {}.", counted(content_.all().files, "file"),
                               human_bytes(content_.all().bytes), human_bytes(content_.all().stored)));
    add_directories(page, content_.parts(ContentCosts::kShownParts), "Directories by what they take");
    const auto top = [&](const char* id, const char* what, const char* caption,
                         const std::vector<ContentCosts::Named>& list) {
      std::vector<std::vector<HtmlPage::Cell>> rows_of_list;
      for (const ContentCosts::Named& row : list)
        rows_of_list.push_back({HtmlPage::text(row.name), HtmlPage::number(row.tally.files),
                                HtmlPage::bytes(row.tally.bytes), HtmlPage::bytes(row.tally.stored),
                                HtmlPage::bytes(row.tally.saved())});
      if (!list.empty()) page.table(id, caption, {what, "files", "size", "stored", "saved"}, rows_of_list);
    };
    top("directories-stored", "directory", "Directories that take most", content_.directories(Order::stored));
    top("types-stored", "type", "Types that take most", content_.types(Order::stored));
    top("files-stored", "file", "Files that take most", content_.files(Order::stored));
    top("directories-saved", "directory", "Directories that save most", content_.directories(Order::saved));
    top("types-saved", "type", "Types that save most", content_.types(Order::saved));
    top("files-saved", "file", "Files that save most", content_.files(Order::saved));
  }
  return page.finish(fmt::format("kin {} report, {}", kVersion, local_time(now())));
}

Result<ExitCode> run_report(Context& context, const ReportOptions& options) {
  KIN_TRY(choose_form(context, options.csv, options.html));
  if (!options.html.empty()) {
    // To fail now, and not when all the work is done.
    KIN_TRY_ASSIGN(const auto can_be_made, OutputFile::open_page(context, options.html, {}));
  }
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  Report report(context, *repository, options);
  KIN_TRY_ASSIGN(const bool damaged, report.gather());
  const bool told = options.html == "-";
  if (!told && options.csv) {
    report.print_csv();
  } else if (!told) {
    report.print();
    context.json("report", report.json());
  }
  KIN_TRY_ASSIGN(const bool lost, warn_of_counted_packs(context, *repository));
  if (!options.html.empty()) {
    KIN_TRY_ASSIGN(const auto page, OutputFile::open_page(context, options.html, {}));
    KIN_TRY(page->finish(report.page()));
  }
  return damaged || lost ? ExitCode::corrupt : ExitCode::ok;
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
  app.add_option("--html", options->html, "also write a page with plots to this file")->check(is_not_empty);
  return [options](Context& context) { return run_report(context, *options); };
}

}  // namespace

extern const Command kReport{"report", "tell what snapshots take and would free, and where the bytes are",
                             define_report};

}  // namespace kin::cmd
