#include "lib/engine/similar_groups.h"

#include "lib/engine/delta_cost.h"
#include "lib/engine/equal_files.h"
#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>

namespace kin {
namespace {

using testing::value_of;
using Files = std::vector<std::uint32_t>;

class Tree {
 public:
  void write(const std::string& name, ByteView content) {
    std::filesystem::create_directories(std::filesystem::path(directory_ / name).parent_path());
    std::ofstream(directory_ / name, std::ios::binary) << as_text(content);
  }
  std::string path(const std::string& name) const { return directory_ / name; }

  std::vector<ComparedFile> find(const FileRules& rules = {}, std::vector<std::string> names = {""}) {
    WalkOptions options;
    for (const std::string& name : names)
      options.sources.push_back({directory_ / name, path_components(directory_ / name)});
    return value_of(
        find_files(options, rules,
                   [&](const std::string&, const Error& error) { skipped.push_back(error.message()); }, {}));
  }
  PrintedFiles print(const Detector& detector, std::vector<ComparedFile> files) {
    return value_of(
        print_files(std::move(files), detector, 2,
                    [&](const std::string&, const Error& error) { skipped.push_back(error.message()); }, {}));
  }

  std::vector<std::string> skipped;

 private:
  testing::TempDir directory_;
};

std::set<std::string> names_of(const std::vector<ComparedFile>& files) {
  std::set<std::string> out;
  for (const ComparedFile& file : files) out.insert(file.path.substr(file.path.find_last_of('/') + 1));
  return out;
}

Bytes changed(Bytes content, std::uint64_t seed) {
  for (std::size_t at = 1000; at + 10 < content.size(); at += 9000)
    content[at] = static_cast<std::uint8_t>(seed + at);
  return content;
}

}  // namespace

TEST_CASE("files are found by size and suffix, and what is none is told only if it was named", "[file_set]") {
  Tree tree;
  tree.write("d/a.txt", testing::text_like(1, 100));
  tree.write("d/b.c", testing::text_like(2, 5'000));
  tree.write("empty.txt", {});
  REQUIRE(::mkfifo(tree.path("d/fifo").c_str(), 0600) == 0);
  CHECK(names_of(tree.find()) == std::set<std::string>{"a.txt", "b.c"});
  CHECK(tree.skipped.empty());
  FileRules rules;
  rules.least_bytes = 0;
  rules.suffixes = {".txt"};
  CHECK(names_of(tree.find(rules)) == std::set<std::string>{"a.txt", "empty.txt"});
  rules.most_bytes = 50;
  CHECK(names_of(tree.find(rules)) == std::set<std::string>{"empty.txt"});
  tree.find({}, {"d/fifo", "d/a.txt", "none"});
  REQUIRE(tree.skipped.size() == 2);
  CHECK(tree.skipped[0].find("none: No such file") != std::string::npos);
  CHECK(tree.skipped[1].find("fifo is a FIFO, and only files are compared") != std::string::npos);
  WalkOptions none;
  none.sources.push_back({tree.path("x"), {"x"}});
  CHECK(testing::code_of(find_files(none, {}, [](const std::string&, const Error&) {}, {})) ==
        ErrorCode::not_found);
}

TEST_CASE("a suffix is what follows the last point of a name", "[file_set]") {
  CHECK(file_suffix("a.b/c.tar.gz") == ".gz");
  CHECK(file_suffix("a.b/c").empty());
  CHECK(file_suffix("a/.profile").empty());
}

TEST_CASE("a file that goes between being found and being read is told of, and the others stay",
          "[file_set]") {
  Tree tree;
  for (const char* name : {"a", "b", "c"}) tree.write(name, testing::text_like(3, 3'000));
  const auto detector = find_detector("features")->make();
  auto found = tree.find();
  std::filesystem::remove(tree.path("b"));
  const PrintedFiles files = tree.print(*detector, std::move(found));
  CHECK(names_of(files.files) == std::set<std::string>{"a", "c"});
  CHECK(files.prints.size() == 2);
  CHECK(tree.skipped.size() == 1);
}

TEST_CASE("equal files are told by their bytes, not by their prints", "[equal_files]") {
  for (const DetectorEntry& entry : all_detectors()) {
    INFO(entry.name);
    Tree tree;
    Bytes large = testing::random_bytes(4, 300'000);
    tree.write("a", large);
    tree.write("b", large);
    large[150'001] ^= 1;  // where no sample is taken, and no feature need be
    tree.write("c", large);
    tree.write("d", as_bytes("tiny"));
    tree.write("e", as_bytes("tiny"));
    tree.write("f", as_bytes("tinY"));
    const PrintedFiles files = tree.print(*entry.make(), tree.find());
    CHECK(value_of(equal_files(files, [](const std::string&, const Error&) {}, {})) ==
          std::vector<Files>{{0, 1}, {3, 4}});
  }
  Tree tree;
  tree.write("a", as_bytes("one"));
  tree.write("b", as_bytes("one"));
  tree.write("c", as_bytes("two"));
  CHECK(value_of(have_equal_content(tree.path("a"), tree.path("b"), {})));
  CHECK_FALSE(value_of(have_equal_content(tree.path("a"), tree.path("c"), {})));
}

TEST_CASE("similar files become groups, and strangers and copies stay out of them", "[similar_groups]") {
  Tree tree;
  const Bytes one = testing::text_like(5, 60'000), two = testing::text_like(6, 60'000);
  tree.write("0", one);
  tree.write("1", changed(one, 1));
  tree.write("2", changed(one, 2));
  tree.write("3", one);
  tree.write("4", two);
  tree.write("5.c", changed(two, 3));
  tree.write("6", testing::text_like(7, 60'000));
  for (const char* name : {"features", "sif", "simhash"}) {
    INFO(name);
    const auto detector = find_detector(name)->make();
    const PrintedFiles files = tree.print(*detector, tree.find());
    const auto equal = value_of(equal_files(files, [](const std::string&, const Error&) {}, {}));
    REQUIRE(equal == std::vector<Files>{{0, 3}});
    const auto groups_with = [&](const PairRules& rules) {
      const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
      const auto pairs = value_of(similar_pairs(files, equal, rules, *index, {}));
      std::set<std::set<std::uint32_t>> out;
      for (const SimilarGroup& group : star_groups(pairs, files.files.size(), rules.least_similarity)) {
        std::set<std::uint32_t> set{group.first};
        for (const auto& member : group.members) set.insert(member.file);
        out.insert(set);
      }
      return out;
    };
    CHECK(groups_with({}) == std::set<std::set<std::uint32_t>>{{0, 1, 2}, {4, 5}});
    PairRules same_suffix;
    same_suffix.same_suffix = true;
    CHECK(groups_with(same_suffix) == std::set<std::set<std::uint32_t>>{{0, 1, 2}});
  }
}

TEST_CASE("a star takes the files that are like its first, and each file once", "[similar_groups]") {
  // 0, 2 and 3 have enough of 1; 3 is like 4, and 4 like 5.
  const std::vector<SimilarPair> pairs = {
      {0, 1, 0.5, 0.6}, {1, 2, 0.9, 0.8}, {1, 3, 0.7, 0.3}, {3, 4, 0.9, 0.9}, {4, 5, 0.4, 0.5}};
  const auto groups = star_groups(pairs, 6, 0.4);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].first == 1);
  REQUIRE(groups[0].members.size() == 3);
  CHECK(groups[0].members[0].file == 2);
  CHECK(groups[0].members[0].similarity == 0.9);
  CHECK(groups[0].members[2].file == 0);
  CHECK(groups[1].first == 4);
  REQUIRE(groups[1].members.size() == 1);  // 3 is taken
  CHECK(groups[1].members[0].file == 5);
}

TEST_CASE("very many files that are all alike are one group, though few of them are compared",
          "[similar_groups]") {
  PrintedFiles files;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Print print;
    print.values = {1, 2, 3, 4, 5, 6, 7, 100 + i};
    if (i % 10 == 0) print.values = {11, 12, 13, 14, 15, 16, 17, 100 + i};
    files.prints.push_back(std::move(print));
    files.files.push_back({i > 10 && i < 20 ? "x.c" : "x", i == 7 ? 9000U : 100U, 0, i});
  }
  const auto detector = find_detector("features")->make();
  const auto groups_with = [&](const PairRules& rules) {
    const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
    const auto pairs = value_of(similar_pairs(files, {}, rules, *index, {}));
    auto groups = star_groups(pairs, files.files.size(), rules.least_similarity);
    CHECK(groups.size() > 8);
    const auto firsts = value_of(detector->make_index(testing::MemoryKeyStore::make));
    REQUIRE(merge_groups(groups, files, rules, *firsts, {}));
    std::vector<std::size_t> sizes;
    for (const SimilarGroup& group : groups) {
      sizes.push_back(group.members.size() + 1);
      for (const auto& member : group.members) CHECK(member.similarity >= rules.least_similarity);
    }
    return sizes;
  };
  CHECK(groups_with({}) == std::vector<std::size_t>{900, 100});
  PairRules rules;
  rules.same_suffix = true;
  rules.most_size_ratio = 2;
  CHECK(groups_with(rules) == std::vector<std::size_t>{890, 100, 9});
}

TEST_CASE("sif's lists have all that are like a file, and each set of files once", "[similar_groups]") {
  const std::vector<SimilarPair> pairs = {{0, 1, 0.5, 0.6}, {2, 3, 0.9, 0.2}};
  const auto lists = sif_lists(pairs, 4, 0.3);
  REQUIRE(lists.size() == 2);  // 1's list is the same set as 0's, and of 3 little is in 2
  CHECK(lists[0].first == 0);
  CHECK(lists[1].first == 2);
}

TEST_CASE("interesting sets share enough and are in no larger one", "[similar_groups]") {
  PrintedFiles files;
  const auto add = [&](std::vector<std::uint64_t> values) {
    Print print;
    print.values = std::move(values);
    files.prints.push_back(std::move(print));
    files.files.emplace_back();
  };
  // 0, 1 and 2 share three values; 0 and 1 two more; 3 shares one with 2 and is alone.
  add({1, 2, 3, 11, 12, 20});
  add({1, 2, 3, 11, 12, 21});
  add({1, 2, 3, 22, 23, 24});
  add({24, 31, 32, 33, 34, 35});
  const auto half = interesting_sets(files, {}, 0.5);
  REQUIRE(half.size() == 1);
  CHECK(half[0].files == Files{0, 1, 2});
  CHECK(half[0].shared == 3);
  const auto most = interesting_sets(files, {}, 0.8);
  REQUIRE(most.size() == 1);
  CHECK(most[0].files == Files{0, 1});
  CHECK(most[0].shared == 5);
  CHECK(interesting_sets(files, {{0, 1}}, 0.8).empty());  // a copy counts as one file
}

TEST_CASE("a delta costs little where files are alike, at any size", "[delta_cost]") {
  Tree tree;
  const Bytes base = testing::random_bytes(8, 100'000);
  tree.write("base", base);
  tree.write("target", changed(base, 9));
  tree.write("other", testing::random_bytes(10, 100'000));
  DeltaCost cost;
  CHECK(value_of(cost.of_files(tree.path("base"), tree.path("target"))) < 1'000);
  CHECK(value_of(cost.of_files(tree.path("other"), tree.path("target"))) >= 99'000);
  CHECK(value_of(cost.of({}, Bytes(100'000, 'x'))) < 100);
}

}  // namespace kin
