#include "cmd/estimate_result.h"

#include "cmd/backup_report.h"
#include "cmd/html_page.h"
#include "cmd/svg_plots.h"
#include "cmd/version.h"
#include "lib/base/text.h"

#include <algorithm>

namespace kin::cmd {
namespace {

double part_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string share_text(double part) { return fmt::format("{:.1f} %", 100 * part); }

// What deltas save beyond compression.
std::uint64_t saved(const Savings::Matches& row) { return row.compressed - row.deltas; }

void add_methods(HtmlPage& page, const EstimateResult& result) {
  page.heading("What it takes");
  std::vector<Bar> bars;
  std::vector<std::vector<HtmlPage::Cell>> rows;
  for (const EstimateResult::Method& method : result.methods) {
    const double part = part_of(method.bytes, result.bytes);
    std::string value = fmt::format("{}, {}", human_bytes(method.bytes), share_text(part));
    if (result.sample)
      value += fmt::format(" (between {} and {})", share_text(part_of(method.low, result.bytes)),
                           share_text(part_of(method.high, result.bytes)));
    bars.push_back({method.text, std::move(value), part});
    rows.push_back({HtmlPage::text(method.text), HtmlPage::bytes(method.bytes),
                    HtmlPage::percent(static_cast<double>(method.bytes), static_cast<double>(result.bytes))});
    if (!result.sample) continue;
    rows.back().push_back(HtmlPage::bytes(method.low));
    rows.back().push_back(HtmlPage::bytes(method.high));
  }
  page.plot(bars_plot({"methods-plot", "Ways to store the files, and what each takes of their size"}, bars));
  std::vector<std::string> head{"stored as", "takes", "of all"};
  if (result.sample) head.insert(head.end(), {"at least", "at most"});
  page.table("methods", "The same in numbers", head, rows);
}

void add_matches(HtmlPage& page, const Savings& savings) {
  std::uint64_t objects = 0, all_saved = 0;
  for (const Savings::Matches& row : savings.by_matches) {
    objects += row.objects;
    all_saved += saved(row);
  }
  if (objects == 0) return;
  page.heading("Resemblance");
  page.paragraph(
      "kin compares files, and parts of large ones, by up to 16 features of their content. The more of them "
      "two have in "
      "common, the smaller is the one as a delta against the other.");
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  std::vector<std::vector<HtmlPage::Cell>> rows;
  Curve with{"objects with at most so many features in common", {}}, from{"what deltas save, from these", {}};
  std::uint64_t objects_so_far = 0, saved_so_far = 0;
  const std::size_t count = savings.by_matches.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Savings::Matches& row = savings.by_matches[i];
    objects_so_far += row.objects;
    saved_so_far += saved(row);
    columns.push_back(
        {std::to_string(i), {part_of(row.compressed, row.bytes), part_of(row.deltas, row.bytes)}});
    const double x = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
    with.points.emplace_back(x, part_of(objects_so_far, objects));
    from.points.emplace_back(x, part_of(saved_so_far, all_saved));
    rows.push_back({HtmlPage::number(i), HtmlPage::number(row.objects), HtmlPage::bytes(row.bytes),
                    HtmlPage::bytes(row.compressed), HtmlPage::bytes(row.deltas),
                    HtmlPage::percent(static_cast<double>(row.deltas), static_cast<double>(row.bytes)),
                    HtmlPage::percent(part_of(objects_so_far, objects), 1),
                    HtmlPage::percent(part_of(saved_so_far, all_saved), 1)});
  }
  Axis features{"features in common with the base", {}};
  for (std::size_t i = 0; i < count; i += 4)
    features.marks.emplace_back(count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1),
                                std::to_string(i));
  page.plot(columns_plot({"matches-plot", "What is left of objects, by features in common with their base"},
                         features.name, percent_axis("part of the original"), {"compressed", "as a delta"},
                         columns));
  page.plot(curves_plot({"cumulative-plot", "Objects, and what deltas save of them, added up"}, features,
                        percent_axis("part of all"), {with, from}));
  page.table("matches", "By features in common; 0: no base that was tried and made it smaller",
             {"features", "objects", "size", "compressed", "as deltas", "of the size", "objects up to here",
              "saved up to here"},
             rows);
}

void add_skew(HtmlPage& page, const Savings& savings) {
  if (savings.skew.empty()) return;
  page.heading("Skew");
  page.paragraph("Mostly a few files are what deltas pay for: those that save most, added up.");
  Curve by_objects{"by number of objects", {}}, by_bytes{"by their bytes", {}};
  std::vector<std::vector<HtmlPage::Cell>> rows;
  for (std::size_t i = 0; i < savings.skew.size(); ++i) {
    const Savings::Skew& point = savings.skew[i];
    by_objects.points.emplace_back(point.objects, point.saved);
    by_bytes.points.emplace_back(point.bytes, point.saved);
    if (i % 10 == 0 || i + 1 == savings.skew.size())
      rows.push_back({HtmlPage::percent(point.objects, 1), HtmlPage::percent(point.bytes, 1),
                      HtmlPage::percent(point.saved, 1)});
  }
  page.plot(curves_plot(
      {"skew-plot", "Which part of the objects and of their bytes saves which part of all that is saved"},
      percent_axis("part of the objects, or bytes"), percent_axis("part of what is saved"),
      {by_objects, by_bytes}));
  page.table("skew", "The same in numbers", {"objects", "bytes", "saved"}, rows);
}

void add_places(HtmlPage& page, const EstimateResult& result) {
  if (!result.parts.empty()) page.heading("Where it is");
  add_directories(page, result.parts, "Directories by what kin would store of them");
  if (result.pairs.empty()) return;
  page.heading("The most similar");
  std::vector<std::vector<HtmlPage::Cell>> rows;
  for (const EstimateResult::Pair& pair : result.pairs)
    rows.push_back({HtmlPage::file(pair.path), HtmlPage::file(pair.base_path),
                    HtmlPage::number(pair.sizes.matches), HtmlPage::bytes(pair.sizes.size),
                    HtmlPage::bytes(pair.sizes.compressed), HtmlPage::bytes(pair.sizes.delta)});
  page.table("pairs", "What saves most as a delta, and against what",
             {"file", "base", "features", "size", "compressed", "as a delta"}, rows);
}

std::string files_text(const EstimateResult& result) {
  const std::string all = fmt::format("{}, {}; ", counted(result.files, "file"), human_bytes(result.bytes));
  if (!result.sample || result.sample->bytes == result.bytes)
    return all + fmt::format("{} of them different", grouped(result.savings.distinct_files));
  return all + fmt::format("a sample of {}, {}, in {} famil{} of similar ones",
                           counted(result.sample->files, "file"), human_bytes(result.sample->bytes),
                           grouped(result.sample->families), result.sample->families == 1 ? "y" : "ies");
}

}  // namespace

void print_estimate(Context& context, const EstimateResult& result) {
  context.print_always(files_text(result));
  context.print_always("");
  context.print_always(fmt::format("{:<52}{:>14}{:>10}{}", "stored as", "bytes", "of all",
                                   result.sample ? fmt::format("{:>32}", "95 % sure between") : ""));
  for (const EstimateResult::Method& method : result.methods) {
    const std::string between =
        result.sample ? fmt::format("{:>16} and {:>11}", human_bytes(method.low), human_bytes(method.high))
                      : "";
    context.print_always(fmt::format("{:<52}{:>14}{:>10}{}", method.text, human_bytes(method.bytes),
                                     share_text(part_of(method.bytes, result.bytes)), between));
  }
  if (!result.containers.empty()) {
    context.print_always("");
    context.print_always(containers_text(result.containers));
  }
  if (result.study) print_study(context, *result.study, result.bytes);
}

void print_estimate_csv(Context& context, const EstimateResult& result) {
  std::ostream& out = context.raw_out();
  const auto between = [&](std::uint64_t low, std::uint64_t high) {
    return result.sample ? fmt::format(",{},{}", low, high) : "";
  };
  out << "method,bytes,percent" << (result.sample ? ",low,high\n" : "\n");
  out << fmt::format("original,{},100{}\n", result.bytes, between(result.bytes, result.bytes));
  for (const EstimateResult::Method& method : result.methods)
    out << fmt::format("{},{},{:.3f}{}\n", method.name, method.bytes,
                       100 * part_of(method.bytes, result.bytes), between(method.low, method.high));
}

Json estimate_json(const EstimateResult& result) {
  Json methods = Json::array(), matches = Json::array(), skew = Json::array(), pairs = Json::array();
  for (const EstimateResult::Method& method : result.methods) {
    methods.push_back({{"name", method.name},
                       {"bytes", method.bytes},
                       {"percent", 100 * part_of(method.bytes, result.bytes)}});
    if (result.sample) methods.back().update({{"low", method.low}, {"high", method.high}});
  }
  for (const Savings::Matches& row : result.savings.by_matches)
    matches.push_back({{"features", matches.size()},
                       {"objects", row.objects},
                       {"size", row.bytes},
                       {"compressed", row.compressed},
                       {"deltas", row.deltas}});
  for (const Savings::Skew& point : result.savings.skew)
    skew.push_back({{"objects", point.objects}, {"bytes", point.bytes}, {"saved", point.saved}});
  for (const EstimateResult::Pair& pair : result.pairs) {
    Json entry{{"features", pair.sizes.matches},
               {"size", pair.sizes.size},
               {"compressed", pair.sizes.compressed},
               {"delta", pair.sizes.delta}};
    set_path(entry, "path", pair.path);
    set_path(entry, "base", pair.base_path);
    pairs.push_back(std::move(entry));
  }
  Json directories = Json::array();
  for (const ContentCosts::Named& part : result.parts) {
    Json entry{{"files", part.tally.files}, {"size", part.tally.bytes}, {"stored_size", part.tally.stored}};
    set_path(entry, "path", part.name);
    directories.push_back(std::move(entry));
  }
  Json out{{"files", result.files},
           {"bytes", result.bytes},
           {"methods", std::move(methods)},
           {"by_features", std::move(matches)},
           {"skew", std::move(skew)},
           {"pairs", std::move(pairs)},
           {"directories", std::move(directories)},
           {"containers", containers_json(result.containers)},
           {"skipped", result.skipped},
           {"changed", !result.changed.empty()}};
  if (result.study) out["study"] = study_json(*result.study);
  if (result.sample)
    out["sample"] = {{"files", result.sample->files},
                     {"bytes", result.sample->bytes},
                     {"families", result.sample->families},
                     {"seed", result.sample->seed}};
  // Beside the files that they are of.
  (result.sample ? out["sample"] : out)
      .update({{"distinct_files", result.savings.distinct_files},
               {"delta_objects", result.savings.delta_objects}});
  return out;
}

std::string estimate_page(const EstimateResult& result) {
  std::string paths;
  for (const std::string& path : result.paths) paths += (paths.empty() ? "" : ", ") + path;
  HtmlPage page("What a backup of " + paths + " would take");
  page.paragraph(files_text(result) + ".");
  if (result.sample)
    page.paragraph(
        "What all files take is told from the sample, and is between the bounds with a chance of 95 %. All "
        "below "
        "the first table is of the sample.");
  if (result.skipped > 0) page.paragraph(skipped_text(result.skipped) + ".");
  if (!result.changed.empty()) page.paragraph("But " + result.changed + ".");
  add_methods(page, result);
  if (!result.containers.empty()) page.paragraph(containers_text(result.containers));
  add_matches(page, result.savings);
  add_skew(page, result.savings);
  add_places(page, result);
  if (result.study) add_study(page, *result.study, result.bytes);
  return page.finish(fmt::format("kin {} estimate, {}", kVersion, local_time(now())));
}

}  // namespace kin::cmd
