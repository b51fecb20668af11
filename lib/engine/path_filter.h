// Patterns that choose paths, with restic's meaning.
//
// A pattern is a path of shell patterns: "*.o", "build/*.o", "/home/*/cache", "a/**/z". One that starts with
// '/' must match from the root; any other may start at any component. A pattern that matches a directory
// matches all below it. '**' stands for any number of components. A leading '!' takes back what earlier
// patterns matched.
#pragma once

#include "lib/base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kin {

// Whether a pattern matches a path, both as components. With `all_below` also if it matches a directory
// above.
bool matches_pattern(std::span<const std::string> pattern, std::span<const std::string> path,
                     bool ignore_case, bool all_below);

class PathFilter {
 public:
  void add(std::string pattern, bool ignore_case = false);
  // One pattern per line; empty lines and those that start with '#' are skipped.
  Result<void> add_file(const std::string& path, bool ignore_case = false);

  bool empty() const { return rules_.empty(); }
  bool matches(std::string_view path) const;

 private:
  struct Rule {
    std::vector<std::string> components;
    bool anchored = false, negated = false, ignore_case = false;
  };
  std::vector<Rule> rules_;
};

// "a//b/./c" -> {a, b, c}
std::vector<std::string> path_components(std::string_view path);

}  // namespace kin
