#include "lib/engine/path_filter.h"

#include "lib/base/file.h"
#include "tests/support/expect.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;

namespace {

bool matches(std::string pattern, std::string_view path) {
  PathFilter filter;
  filter.add(std::move(pattern));
  return filter.matches(path);
}

// What "**" means, word for word: any number of components.
bool matches_as_said(std::span<const std::string> pattern, std::span<const std::string> path,
                     bool all_below) {
  if (pattern.empty()) return path.empty() || all_below;
  if (pattern[0] != "**")
    return !path.empty() && pattern[0] == path[0] &&
           matches_as_said(pattern.subspan(1), path.subspan(1), all_below);
  for (std::size_t taken = 0; taken <= path.size(); ++taken)
    if (matches_as_said(pattern.subspan(1), path.subspan(taken), all_below)) return true;
  return false;
}

}  // namespace

TEST_CASE("a pattern without a leading slash matches at any depth, and all below it", "[path_filter]") {
  CHECK(matches("*.o", "/home/u/a.o"));
  CHECK(matches("*.o", "/home/u/a.o/inside"));
  CHECK(matches("cache", "/home/u/cache"));
  CHECK(matches("u/cache", "/home/u/cache/x"));
  CHECK_FALSE(matches("*.o", "/home/u/a.oo"));
  CHECK_FALSE(matches("u/cache", "/home/u/x/cache"));
  CHECK_FALSE(matches("cache", "/home/u/cached"));
}

TEST_CASE("a pattern with a leading slash matches from the root only", "[path_filter]") {
  CHECK(matches("/home/*/cache", "/home/u/cache"));
  CHECK(matches("/home", "/home/u"));
  CHECK_FALSE(matches("/u/cache", "/home/u/cache"));
  CHECK_FALSE(matches("/home/*/cache", "/home/u/x/cache"));
}

TEST_CASE("two stars stand for any number of directories", "[path_filter]") {
  CHECK(matches("/a/**/z", "/a/z"));
  CHECK(matches("/a/**/z", "/a/b/c/z"));
  CHECK(matches("**/z", "/z"));
  CHECK(matches("a/**", "/x/a/b"));
  CHECK_FALSE(matches("/a/**/z", "/a/b/c"));
  CHECK_FALSE(matches("/a/**/z", "/b/z"));
}

TEST_CASE("a pattern can be held to the path itself, without what is below it", "[path_filter]") {
  const auto whole = [](std::string_view pattern, std::string_view path) {
    return matches_pattern(path_components(pattern), path_components(path), false, false);
  };
  CHECK(whole("a/*.o", "a/b.o"));
  CHECK_FALSE(whole("a/*.o", "a/b.o/c"));
  CHECK_FALSE(whole("a", "a/b"));
  CHECK(whole("a/**", "a"));
  CHECK(whole("a/**", "a/b/c"));
  CHECK(whole("a/**/**/c", "a/c"));
  CHECK_FALSE(whole("a/**/c", "a/c/d"));
  CHECK_FALSE(whole("**/c", "c/d"));
  CHECK(matches_pattern(path_components("A/B"), path_components("a/b"), true, false));
}

TEST_CASE("many stars for directories take no longer than one", "[path_filter]") {
  std::string path, pattern;
  for (int i = 0; i < 200; ++i) path += "/a";
  for (int i = 0; i < 40; ++i) pattern += "**/a/";
  CHECK_FALSE(matches(pattern + "b", path));
  CHECK(matches(pattern + "b", path + "/b"));
}

TEST_CASE("all short patterns match what they say", "[path_filter]") {
  const auto sequences = [](const std::vector<std::string>& words, std::size_t most) {
    std::vector<std::vector<std::string>> out{{}};
    for (std::size_t i = 0; i < out.size(); ++i)
      for (const std::string& word : words) {
        if (out[i].size() == most) break;
        std::vector<std::string> longer = out[i];
        longer.push_back(word);
        out.push_back(std::move(longer));
      }
    return out;
  };
  std::size_t wrong = 0;
  for (const auto& pattern : sequences({"a", "b", "**"}, 5))
    for (const auto& path : sequences({"a", "b"}, 5))
      for (const bool all_below : {false, true})
        wrong +=
            matches_pattern(pattern, path, false, all_below) != matches_as_said(pattern, path, all_below);
  CHECK(wrong == 0);
}

TEST_CASE("a later pattern with an exclamation mark takes back what earlier ones matched", "[path_filter]") {
  PathFilter filter;
  filter.add("*.txt");
  filter.add("!keep.txt");
  CHECK(filter.matches("/a/b.txt"));
  CHECK_FALSE(filter.matches("/a/keep.txt"));
  filter.add("/a/keep.txt");
  CHECK(filter.matches("/a/keep.txt"));
}

TEST_CASE("case is ignored only where that was asked for", "[path_filter]") {
  PathFilter filter;
  filter.add("*.JPG", true);
  CHECK(filter.matches("/a/b.jpg"));
  CHECK_FALSE(matches("*.JPG", "/a/b.jpg"));
}

TEST_CASE("a pattern file has a pattern per line, comments and empty lines aside", "[path_filter]") {
  TempDir dir;
  const std::string path = dir / "patterns";
  {
    std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
    std::fputs("# a comment\n\n*.o\r\nlast", file.get());
  }
  PathFilter filter;
  require_ok(filter.add_file(path));
  CHECK(filter.matches("/x/a.o"));
  CHECK(filter.matches("/x/last"));
  CHECK_FALSE(filter.matches("/x/# a comment"));
  CHECK(code_of(filter.add_file(dir / "absent")) == ErrorCode::not_found);
}

TEST_CASE("an empty pattern matches nothing", "[path_filter]") {
  PathFilter filter;
  filter.add("");
  filter.add("/");
  filter.add("!");
  CHECK(filter.empty());
  CHECK_FALSE(filter.matches("/a"));
}
