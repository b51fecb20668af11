#include "lib/engine/path_filter.h"

#include "lib/base/bytes.h"
#include "lib/base/file.h"

#include <algorithm>
#include <fnmatch.h>

namespace kin {
namespace {

constexpr std::uint64_t kMostPatternFileBytes = 64 << 20;

}  // namespace

// What a "**" has to take is found as for the '*' of a name: where the rest does not match, the last one
// takes a component more, and those before it need not be tried again. To try all of them takes time that
// doubles with each.
bool matches_pattern(std::span<const std::string> pattern, std::span<const std::string> path,
                     bool ignore_case, bool all_below) {
  const int flags = ignore_case ? FNM_CASEFOLD : 0;
  std::size_t at = 0, component = 0;
  std::size_t behind_stars = 0, first_behind = 0;  // of the pattern, and of the path; 0: there are none yet
  for (;;) {
    if (at < pattern.size() && pattern[at] == "**") {
      while (at < pattern.size() && pattern[at] == "**") ++at;
      if (at == pattern.size()) return true;
      behind_stars = at;
      first_behind = component;
    }
    const bool is_at_end = component == path.size();
    if (at == pattern.size() && (is_at_end || all_below)) return true;
    if (at < pattern.size() && !is_at_end &&
        ::fnmatch(pattern[at].c_str(), path[component].c_str(), flags) == 0) {
      ++at;
      ++component;
      continue;
    }
    if (behind_stars == 0 || first_behind == path.size()) return false;
    at = behind_stars;
    component = ++first_behind;
  }
}

std::vector<std::string> path_components(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") out.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

void PathFilter::add(std::string pattern, bool ignore_case) {
  Rule rule;
  rule.ignore_case = ignore_case;
  if (pattern.starts_with('!')) {
    rule.negated = true;
    pattern.erase(0, 1);
  }
  rule.anchored = pattern.starts_with('/');
  rule.components = path_components(pattern);
  if (!rule.components.empty()) rules_.push_back(std::move(rule));
}

Result<void> PathFilter::add_file(const std::string& path, bool ignore_case) {
  KIN_TRY_ASSIGN(const Bytes bytes, read_file(path, kMostPatternFileBytes));
  std::string_view text = as_text(bytes);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) add(std::string(line), ignore_case);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

bool PathFilter::matches(std::string_view path) const {
  if (rules_.empty()) return false;
  const std::vector<std::string> components = path_components(path);
  bool matched = false;
  for (const Rule& rule : rules_) {
    if (matched != rule.negated) continue;  // it would change nothing
    bool hit = false;
    for (std::size_t start = 0; start < components.size() && !hit; ++start) {
      hit = matches_pattern(rule.components, std::span(components).subspan(start), rule.ignore_case, true);
      if (rule.anchored) break;
    }
    if (hit) matched = !rule.negated;
  }
  return matched;
}

}  // namespace kin
