#include "lib/engine/content_diff.h"

#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <fstream>

namespace kin {
namespace {

using testing::value_of;
using Kind = ContentChange::Kind;

bool nothing_unknown(const std::string& /*name*/) { return false; }

// Files of one side: written, and printed by kin's features.
struct Side {
  explicit Side(std::string directory) : directory_(std::move(directory)) {}

  void add(const std::string& name, ByteView content) {
    const std::string path = directory_ + name;
    std::ofstream(path, std::ios::binary) << as_text(content);
    MemoryContent reader(content);
    files.files.push_back({path, content.size(), 0, ++inodes});
    files.prints.push_back(value_of(find_detector("features")->make()->print(reader, name)));
    names.push_back(name);
  }

  PrintedFiles files;
  std::vector<std::string> names;
  static inline std::uint64_t inodes = 0;

 private:
  std::string directory_;
};

}  // namespace

TEST_CASE("each file of two directories is in one change: by name, then bytes, then likeness",
          "[content_diff]") {
  const testing::TempDir directory;
  Side a(directory / "a_"), b(directory / "b_");
  const Bytes one = testing::text_like(1, 20'000), two = testing::text_like(2, 20'000);
  Bytes two_changed = two, one_changed = one;
  two_changed[10'000] ^= 1;
  one_changed[10'000] ^= 1;
  a.add("changed", one);
  a.add("gone", testing::text_like(3, 20'000));
  a.add("moved", two);
  a.add("moved_again", two);
  a.add("same", two);
  b.add("alike", two_changed);
  b.add("changed", one_changed);
  b.add("elsewhere", two);
  b.add("new", testing::text_like(4, 20'000));
  b.add("same", two);
  const auto index = value_of(find_detector("features")->make()->make_index(testing::MemoryKeyStore::make));
  const auto changes =
      value_of(compare_by_content(a.files, a.names, b.files, b.names, 0.25, *index, nothing_unknown,
                                  [](const std::string&, const Error&) {}, {}));
  struct Expected {
    Kind kind;
    std::optional<std::uint32_t> a, b;
  };
  // Of two copies, one has moved, and the other is like what is left.
  const Expected expected[] = {{Kind::changed, 0, 1}, {Kind::only_a, 1, {}}, {Kind::renamed, 2, 2},
                               {Kind::similar, 3, 0}, {Kind::equal, 4, 4},   {Kind::only_b, {}, 3}};
  REQUIRE(changes.size() == std::size(expected));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO(i);
    CHECK(changes[i].kind == expected[i].kind);
    CHECK(changes[i].a == expected[i].a);
    CHECK(changes[i].b == expected[i].b);
  }
  CHECK(changes[0].similarity > 0.8);
  CHECK(changes[3].similarity > 0.8);
}

TEST_CASE("what one side could not read is neither new nor gone, and nothing is taken for it",
          "[content_diff]") {
  const testing::TempDir directory;
  Side a(directory / "a_"), b(directory / "b_");
  const Bytes content = testing::text_like(1, 20'000);
  a.add("here", content);
  a.add("same", testing::text_like(2, 20'000));
  b.add("elsewhere", content);
  b.add("same", testing::text_like(2, 20'000));
  b.add("there", content);
  const auto is_unknown = [](const std::string& name) { return name != "elsewhere"; };
  const auto index = value_of(find_detector("features")->make()->make_index(testing::MemoryKeyStore::make));
  const auto changes = value_of(compare_by_content(a.files, a.names, b.files, b.names, 0.25, *index,
                                                   is_unknown, [](const std::string&, const Error&) {}, {}));
  REQUIRE(changes.size() == 4);
  CHECK(changes[0].kind == Kind::unknown);
  CHECK(changes[0].a == 0);
  CHECK_FALSE(changes[0].b);
  CHECK(changes[1].kind == Kind::equal);  // read, and found the same
  CHECK(changes[2].kind == Kind::only_b);
  CHECK(changes[3].kind == Kind::unknown);
  CHECK(changes[3].b == 2);
}

TEST_CASE("files of the same name that have nothing in common are changed all the same", "[content_diff]") {
  const testing::TempDir directory;
  Side a(directory / "a_"), b(directory / "b_");
  a.add("file", testing::text_like(5, 20'000));
  b.add("file", testing::random_bytes(6, 20'000));
  const auto index = value_of(find_detector("features")->make()->make_index(testing::MemoryKeyStore::make));
  const auto changes =
      value_of(compare_by_content(a.files, a.names, b.files, b.names, 0.25, *index, nothing_unknown,
                                  [](const std::string&, const Error&) {}, {}));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].kind == Kind::changed);
  CHECK(changes[0].similarity == 0);
}

TEST_CASE("how much of a changed file is left does not depend on other files", "[content_diff]") {
  const testing::TempDir directory;
  Side a(directory / "a_"), b(directory / "b_");
  const Bytes before = testing::text_like(7, 20'000);
  Bytes after = before;
  after[10'000] ^= 1;
  a.add("file", before);
  b.add("file", after);
  const auto similarity = [&] {
    const auto index = value_of(find_detector("features")->make()->make_index(testing::MemoryKeyStore::make));
    return value_of(compare_by_content(a.files, a.names, b.files, b.names, 0.25, *index, nothing_unknown,
                                       [](const std::string&, const Error&) {}, {}))
        .front()
        .similarity;
  };
  const double alone = similarity();
  CHECK(alone > 0.8);
  for (int i = 0; i < 5'000; ++i) {  // as like it as the one of its name
    b.files.files.push_back(b.files.files[0]);
    b.files.prints.push_back(b.files.prints[0]);
    b.names.push_back("more" + std::to_string(i));
  }
  CHECK(similarity() == alone);
}

}  // namespace kin
