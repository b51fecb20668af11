#include "cmd/estimate_study.h"

#include "lib/base/text.h"

#include <algorithm>

namespace kin::cmd {
namespace {

// A question, and its answer as a table; the first column has the rows' names. All forms are made of it.
struct Table {
  const char* id;
  const char* title;
  std::vector<std::string> columns;
  std::vector<std::vector<HtmlPage::Cell>> rows;
};

HtmlPage::Cell part(std::uint64_t bytes, std::uint64_t of) {
  return HtmlPage::percent(static_cast<double>(bytes), static_cast<double>(of));
}

Table matches_table(const Savings& savings) {
  Table out{"study-matches",
            "By features in common with the base (0: none that was tried and made it smaller)",
            {"features", "objects", "size", "compressed", "as deltas"},
            {}};
  for (const Savings::Matches& row : savings.by_matches)
    out.rows.push_back({HtmlPage::number(out.rows.size()), HtmlPage::number(row.objects),
                        HtmlPage::bytes(row.bytes), part(row.compressed, row.bytes),
                        part(row.deltas, row.bytes)});
  return out;
}

Table skew_table(const Savings& savings) {
  Table out{"study-skew",
            "The objects that save most, and what they save of all that deltas save",
            {"objects", "their bytes", "saved"},
            {}};
  for (const double least : {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0}) {
    const auto at = std::find_if(savings.skew.begin(), savings.skew.end(),
                                 [&](const Savings::Skew& point) { return point.objects >= least - 1e-9; });
    if (at != savings.skew.end())
      out.rows.push_back({HtmlPage::percent(at->objects, 1), HtmlPage::percent(at->bytes, 1),
                          HtmlPage::percent(at->saved, 1)});
  }
  return out;
}

Table rounding_table(const Savings& savings) {
  Table out{"study-blocks",
            "On a disk with blocks of",
            {"block", "original", "compressed", "as deltas", "of the original"},
            {}};
  for (const Savings::Rounding& row : savings.roundings)
    out.rows.push_back({HtmlPage::bytes(row.block), HtmlPage::bytes(row.original),
                        HtmlPage::bytes(row.compressed), HtmlPage::bytes(row.deltas),
                        part(row.deltas, row.original)});
  return out;
}

Table threshold_table(const Savings& savings, std::uint64_t bytes) {
  Table out{"study-thresholds",
            "A delta only where it takes at most so much of what the object takes compressed",
            {"at most", "deltas", "all take", "of all"},
            {}};
  for (const Savings::Threshold& row : savings.thresholds)
    out.rows.push_back({HtmlPage::percent(row.percent, 100), HtmlPage::number(row.delta_objects),
                        HtmlPage::bytes(row.deltas), part(row.deltas, bytes)});
  return out;
}

Table minimum_table(const Savings& savings) {
  Table out{
      "study-sizes", "Objects of at least", {"size", "objects", "bytes", "compressed", "as deltas"}, {}};
  for (const Savings::Minimum& row : savings.minimums)
    out.rows.push_back({HtmlPage::bytes(row.size), HtmlPage::number(row.objects), HtmlPage::bytes(row.bytes),
                        part(row.compressed, row.bytes), part(row.deltas, row.bytes)});
  return out;
}

Table sketches_table(const char* id, const char* title, const char* value,
                     const std::vector<EstimateStudy::Sketches>& rows, std::uint64_t bytes) {
  Table out{id, title, {value, "deltas", "each file a delta", "of all", "kin --no-unpack", "of all"}, {}};
  for (const EstimateStudy::Sketches& row : rows)
    out.rows.push_back({HtmlPage::number(row.value), HtmlPage::number(row.delta_objects),
                        HtmlPage::bytes(row.deltas), part(row.deltas, bytes), HtmlPage::bytes(row.kin),
                        part(row.kin, bytes)});
  return out;
}

Table equal_table(const Savings& savings) {
  const Savings::EqualBases& equal = savings.equal_bases;
  const auto average = static_cast<std::uint64_t>(equal.average);
  Table out{"study-bases",
            "Objects with several bases of the most features in common, up to four of them tried",
            {"base", "objects", "size", "deltas", "of the size"},
            {}};
  if (equal.objects == 0) return out;
  for (const auto& [name, deltas] : {std::pair<const char*, std::uint64_t>{"the first", equal.first},
                                     {"on average", average},
                                     {"the best", equal.best}})
    out.rows.push_back({HtmlPage::text(name), HtmlPage::number(equal.objects), HtmlPage::bytes(equal.bytes),
                        HtmlPage::bytes(deltas), part(deltas, equal.bytes)});
  return out;
}

Table programs_table(const Savings& savings) {
  const Savings::Programs& programs = savings.programs;
  Table out{
      "study-programs", "Objects with a base, by", {"program", "objects", "size", "take", "of the size"}, {}};
  if (programs.objects == 0) return out;
  for (const auto& [name, bytes] :
       {std::pair<const char*, std::uint64_t>{"compression alone", programs.compressed},
        {"zstd", programs.zstd},
        {"xdelta3", programs.xdelta3},
        {"the smaller of each", programs.better}})
    out.rows.push_back({HtmlPage::text(name), HtmlPage::number(programs.objects),
                        HtmlPage::bytes(programs.bytes), HtmlPage::bytes(bytes),
                        part(bytes, programs.bytes)});
  return out;
}

// In percent of the original.
struct Published {
  const char* name;
  int compressed, deltas;
};
constexpr Published kPaper[] = {{"the paper: /usr", 45, 36}, {"the paper: MH mail", 54, 34}};

Table paper_table(const EstimateStudy& study, std::uint64_t bytes) {
  Table out{
      "study-paper", "Beside the files of Douglis and Iyengar", {"files", "compressed", "as deltas"}, {}};
  out.rows.push_back({HtmlPage::text("these"), part(study.compressed, bytes), part(study.deltas, bytes)});
  for (const Published& row : kPaper)
    out.rows.push_back({HtmlPage::text(row.name), HtmlPage::percent(row.compressed, 100),
                        HtmlPage::percent(row.deltas, 100)});
  return out;
}

Json sketches_json(const char* value, const std::vector<EstimateStudy::Sketches>& rows) {
  Json out = Json::array();
  for (const EstimateStudy::Sketches& row : rows)
    out.push_back(
        {{value, row.value}, {"deltas", row.deltas}, {"delta_objects", row.delta_objects}, {"kin", row.kin}});
  return out;
}

std::vector<Table> tables(const EstimateStudy& study, std::uint64_t bytes) {
  std::vector<Table> out{
      paper_table(study, bytes),
      matches_table(study.savings),
      skew_table(study.savings),
      rounding_table(study.savings),
      threshold_table(study.savings, bytes),
      minimum_table(study.savings),
      sketches_table("study-features", "With sketches of at most", "features", study.features, bytes),
      sketches_table("study-windows", "With features of shingles of", "bytes", study.windows, bytes),
      equal_table(study.savings),
      programs_table(study.savings)};
  std::erase_if(out, [](const Table& table) { return table.rows.empty(); });
  return out;
}

}  // namespace

void print_study(Context& context, const EstimateStudy& study, std::uint64_t bytes) {
  for (const Table& table : tables(study, bytes)) {
    context.print_always("");
    context.print_always(table.title);
    const auto line = [&](const auto& cells, const auto& text_of) {
      std::string out = fmt::format("{:<20}", text_of(cells.front()));
      for (std::size_t i = 1; i < cells.size(); ++i) out += fmt::format("{:>19}", text_of(cells[i]));
      context.print_always(out);
    };
    line(table.columns, [](const std::string& text) { return text; });
    for (const std::vector<HtmlPage::Cell>& row : table.rows)
      line(row, [](const HtmlPage::Cell& cell) { return cell.text; });
  }
}

void add_study(HtmlPage& page, const EstimateStudy& study, std::uint64_t bytes) {
  page.heading("Study");
  for (const Table& table : tables(study, bytes))
    page.table(table.id, table.title, table.columns, table.rows);
}

Json study_json(const EstimateStudy& study) {
  const Savings& savings = study.savings;
  Json blocks = Json::array(), thresholds = Json::array(), sizes = Json::array();
  for (const Savings::Rounding& row : savings.roundings)
    blocks.push_back({{"block", row.block},
                      {"original", row.original},
                      {"compressed", row.compressed},
                      {"deltas", row.deltas}});
  for (const Savings::Threshold& row : savings.thresholds)
    thresholds.push_back(
        {{"percent", row.percent}, {"deltas", row.deltas}, {"delta_objects", row.delta_objects}});
  for (const Savings::Minimum& row : savings.minimums)
    sizes.push_back({{"least_size", row.size},
                     {"objects", row.objects},
                     {"size", row.bytes},
                     {"compressed", row.compressed},
                     {"deltas", row.deltas}});
  const Savings::EqualBases& equal = savings.equal_bases;
  const Savings::Programs& programs = savings.programs;
  return {{"blocks", std::move(blocks)},
          {"thresholds", std::move(thresholds)},
          {"least_sizes", std::move(sizes)},
          {"features", sketches_json("features", study.features)},
          {"shingles", sketches_json("bytes", study.windows)},
          {"equal_bases",
           {{"objects", equal.objects},
            {"size", equal.bytes},
            {"first", equal.first},
            {"average", equal.average},
            {"best", equal.best}}},
          {"programs",
           {{"objects", programs.objects},
            {"size", programs.bytes},
            {"compressed", programs.compressed},
            {"zstd", programs.zstd},
            {"xdelta3", programs.xdelta3},
            {"smaller", programs.better}}}};
}

}  // namespace kin::cmd
