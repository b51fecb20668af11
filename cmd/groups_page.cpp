#include "cmd/groups_page.h"

#include "cmd/file_options.h"
#include "cmd/html_page.h"
#include "cmd/svg_plots.h"
#include "cmd/version.h"
#include "lib/base/text.h"

#include <algorithm>
#include <set>

namespace kin::cmd {
namespace {

// A page is for people: beyond this, --json has all.
constexpr std::size_t kShownGroups = 200, kShownStars = 16, kShownPoints = 24;

void tell_of_the_rest(HtmlPage& page, std::size_t groups) {
  if (groups > kShownGroups)
    page.paragraph(
        fmt::format("These are the first {} of {} groups; --json tells all.", kShownGroups, grouped(groups)));
}

Json group_file_json(const GroupsResult& result, std::uint32_t at) {
  Json out{{"size", result.file(at).size}};
  set_path(out, "path", result.file(at).path);
  return out;
}

}  // namespace

std::uint64_t GroupsResult::equal_bytes() const {
  std::uint64_t out = 0;
  for (const auto& set : equal) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> inodes;  // names of one file take no room
    for (const std::uint32_t at : set) inodes.emplace(file(at).device, file(at).inode);
    out += (inodes.size() - 1) * file(set.front()).size;
  }
  return out;
}

// As sif prints its groups: R marks the file with which the others are compared.
void print_groups(Context& context, const GroupsResult& result) {
  if (!result.equal.empty()) context.print_always("The following groups of files are equal.");
  for (const auto& set : result.equal) {
    context.print_always("");
    for (const std::uint32_t at : set)
      context.print_always(fmt::format("{} {}", printable(result.file(at).path), result.file(at).size));
  }
  if (!result.equal.empty()) context.print_always("");
  if (!result.similar.empty())
    context.print_always(fmt::format("The following groups of files are similar. Minimum similarity = {}%",
                                     percent_number(result.least_similarity)));
  for (const SimilarGroup& group : result.similar) {
    context.print_always("");
    const ComparedFile& first = result.file(group.first);
    context.print_always(fmt::format("R100 {} {}", printable(first.path), first.size));
    for (const auto& member : group.members)
      context.print_always(fmt::format("{:>4} {} {}", percent_number(member.similarity),
                                       printable(result.file(member.file).path),
                                       result.file(member.file).size));
  }
  if (!result.similar.empty()) context.print_always("");
  if (!result.interesting.empty())
    context.print_always("The files of each of the following sets have so many values in common.");
  for (const InterestingSet& set : result.interesting) {
    context.print_always(fmt::format("\n{}", set.shared));
    for (const std::uint32_t at : set.files)
      context.print_always(fmt::format("     {} {}", printable(result.file(at).path), result.file(at).size));
  }
  context.print(fmt::format("{}{} of {}; {} of equal files, whose copies take {}; {} of similar ones",
                            result.interesting.empty() ? "" : "\n", human_bytes(result.files.bytes),
                            counted(result.files.files.size(), "file"), counted(result.equal.size(), "group"),
                            human_bytes(result.equal_bytes()), counted(result.similar.size(), "group")));
}

Result<void> write_groups_json(Context& context, const GroupsResult& result, std::uint64_t skipped) {
  for (const auto& set : result.equal) {
    Json files = Json::array();
    for (const std::uint32_t at : set) files.push_back(group_file_json(result, at));
    context.json("equal_group", {{"files", std::move(files)}});
    KIN_TRY(context.still_heard());
  }
  for (const SimilarGroup& group : result.similar) {
    Json files = Json::array();
    for (const auto& member : group.members) {
      files.push_back(group_file_json(result, member.file));
      files.back()["similarity"] = member.similarity;
    }
    context.json("similar_group",
                 {{"first", group_file_json(result, group.first)}, {"files", std::move(files)}});
    KIN_TRY(context.still_heard());
  }
  for (const InterestingSet& set : result.interesting) {
    Json files = Json::array();
    for (const std::uint32_t at : set.files) files.push_back(group_file_json(result, at));
    context.json("interesting_set", {{"shared", set.shared}, {"files", std::move(files)}});
    KIN_TRY(context.still_heard());
  }
  context.json("summary", {{"method", result.method},
                           {"files", result.files.files.size()},
                           {"bytes", result.files.bytes},
                           {"equal_groups", result.equal.size()},
                           {"equal_bytes", result.equal_bytes()},
                           {"similar_groups", result.similar.size()},
                           {"candidates", result.counts.candidates},
                           {"matches", result.counts.matches},
                           {"skipped", skipped}});
  return {};
}

std::string groups_page(const GroupsResult& result) {
  HtmlPage page("Groups of similar files");
  page.paragraph(
      fmt::format("{}, {}; compared by {}, from {} on. {} of equal files, whose copies "
                  "take {}, and {} of similar ones.",
                  counted(result.files.files.size(), "file"), human_bytes(result.files.bytes), result.method,
                  percent_text(result.least_similarity), counted(result.equal.size(), "group"),
                  human_bytes(result.equal_bytes()), counted(result.similar.size(), "group")));
  if (!result.similar.empty()) {
    page.heading("Similar files");
    std::vector<Star> stars;
    for (const SimilarGroup& group : result.similar) {
      if (stars.size() == kShownStars) break;
      Star star{result.file(group.first).path, {}};
      for (const auto& member : group.members) {
        if (star.points.size() == kShownPoints) break;
        star.points.push_back(
            {fmt::format("{} ({})", result.file(member.file).path, percent_text(member.similarity)),
             member.similarity});
      }
      stars.push_back(std::move(star));
    }
    page.plot(
        stars_plot({"groups-plot",
                    "The largest groups, up to 24 files of each: in the middle the file that the others "
                    "are compared with, and the nearer the more alike"},
                   stars));
    std::vector<std::vector<HtmlPage::Cell>> rows;
    std::size_t number = 0;
    for (const SimilarGroup& group : result.similar) {
      if (++number > kShownGroups) break;
      rows.push_back({HtmlPage::file(result.file(group.first).path), HtmlPage::number(number),
                      HtmlPage::percent(1, 1), HtmlPage::bytes(result.file(group.first).size)});
      for (const auto& member : group.members)
        rows.push_back({HtmlPage::file(result.file(member.file).path), HtmlPage::number(number),
                        HtmlPage::percent(member.similarity, 1),
                        HtmlPage::bytes(result.file(member.file).size)});
    }
    page.table("similar",
               "Groups of similar files, each with the file first that the others are compared with",
               {"file", "group", "similarity", "size"}, rows);
    tell_of_the_rest(page, result.similar.size());
  }
  if (!result.equal.empty()) {
    page.heading("Equal files");
    std::vector<std::vector<HtmlPage::Cell>> rows;
    std::size_t number = 0;
    for (const auto& set : result.equal) {
      if (++number > kShownGroups) break;
      for (const std::uint32_t at : set)
        rows.push_back({HtmlPage::file(result.file(at).path), HtmlPage::number(number),
                        HtmlPage::bytes(result.file(at).size)});
    }
    page.table("equal", "Groups of equal files", {"file", "group", "size"}, rows);
    tell_of_the_rest(page, result.equal.size());
  }
  return page.finish(fmt::format("kin {} groups", kVersion));
}

}  // namespace kin::cmd
