// Restore of trees that are made by hand, into targets that are not empty.
#include "lib/engine/restore.h"

#include "lib/base/file.h"
#include "lib/engine/dry_run_store.h"
#include "lib/object/content.h"
#include "lib/object/tree.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {
namespace {

namespace fs = std::filesystem;
using testing::code_of;
using testing::FaultyDisk;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;

constexpr Timestamp kTime{1'600'000'000, 5};

struct Recorder : RestoreObserver {
  void on_entry(const std::string& path, const Node&, Action action) override {
    MutexLock lock(mutex);
    done[path] = action;
  }
  void on_failed(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    failed[path] = error.message();
  }
  void on_not_deleted(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    not_deleted[path] = error.message();
  }
  void on_left_alone(const std::string& path) override {
    MutexLock lock(mutex);
    left_alone.push_back(path);
  }

  Mutex mutex;
  std::map<std::string, Action> done;
  std::map<std::string, std::string> failed, not_deleted;
  std::vector<std::string> left_alone;
};

class Trees {
 public:
  Trees() : disk_(std::make_unique<FaultyDisk>()) {
    testing::create_repository(*disk_);
    repository_ = testing::reopen(*disk_);
    request.target = dir / "target";
    fs::create_directory(request.target);
  }

  Extent data(const Bytes& bytes) {
    return {Extent::Kind::data, bytes.size(), value_of(testing::store_object(*repository_, bytes))};
  }

  Node node(const std::string& name, NodeType type) {
    Node out;
    out.name = name;
    out.type = type;
    out.mode = type == NodeType::directory ? 0755 : 0644;
    out.uid = ::geteuid();
    out.gid = ::getegid();
    out.mtime = kTime;
    return out;
  }
  Node file(const std::string& name, const std::vector<Extent>& content) {
    Node out = node(name, NodeType::file);
    out.content = content;
    for (const Extent& extent : content) out.size += extent.size;
    return out;
  }
  Node file(const std::string& name, std::string_view text) { return file(name, {data(bytes_of(text))}); }
  // One of several names of an inode.
  Node linked(Node node, std::uint64_t links, std::uint64_t inode = 7) {
    node.links = links;
    node.inode = inode;
    node.device = 1;
    return node;
  }
  Node directory(const std::string& name, const std::vector<Node>& entries, std::uint32_t mode = 0755) {
    Node out = node(name, NodeType::directory);
    out.mode = mode;
    out.subtree = tree(entries);
    return out;
  }
  ObjectId tree(const std::vector<Node>& entries) {
    TreeWriter writer([this](ObjectKind kind, const Bytes& bytes) {
      return testing::store_object(*repository_, bytes, kind);
    });
    for (const Node& entry : entries) require_ok(writer.add(entry));
    return value_of(writer.finish());
  }

  RestoreStats restore(const std::vector<Node>& entries) {
    request.tree = tree(entries);
    recorder.done.clear();
    recorder.failed.clear();
    recorder.not_deleted.clear();
    recorder.left_alone.clear();
    return value_of(kin::restore(*repository_, request, recorder, {}));
  }

  // In the target.
  std::string at(const std::string& path) const { return request.target + "/" + path; }
  void put(const std::string& path, std::string_view text, Timestamp mtime = kTime) {
    fs::create_directories(fs::path(at(path)).parent_path());
    const Fd fd(::open(at(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    require_ok(write_all(fd.get(), as_bytes(text), path));
    const timespec time{mtime.seconds, mtime.nanoseconds};
    const timespec times[2] = {time, time};
    REQUIRE(::futimens(fd.get(), times) == 0);
  }
  std::string text(const std::string& path) const {
    return std::string(as_text(value_of(read_file(at(path), 1 << 20))));
  }
  bool exists(const std::string& path) const { return fs::exists(fs::symlink_status(at(path))); }
  bool same_inode(const std::string& a, const std::string& b) const {
    struct stat first {
    }, second{};
    REQUIRE(::lstat(at(a).c_str(), &first) == 0);
    REQUIRE(::lstat(at(b).c_str(), &second) == 0);
    return first.st_ino == second.st_ino;
  }

  static Bytes bytes_of(std::string_view text) { return Bytes(text.begin(), text.end()); }
  store::Repository& repository() { return *repository_; }

  TempDir dir;
  RestoreRequest request;
  Recorder recorder;

 private:
  std::unique_ptr<FaultyDisk> disk_;
  std::unique_ptr<store::Repository> repository_;
};

// Until the end of the scope we are someone whom permissions bind.
class Unprivileged {
 public:
  explicit Unprivileged(const TempDir& dir) {
    if (!was_root_) return;
    for (const auto& entry : fs::recursive_directory_iterator(dir.path()))
      REQUIRE(::lchown(entry.path().c_str(), kNobody, kNobody) == 0);
    REQUIRE(::chown(dir.path().c_str(), kNobody, kNobody) == 0);
    REQUIRE(::seteuid(kNobody) == 0);
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_ = ::geteuid() == 0;
};

// Counts what is asked of a repository.
class Watched : public DryRunStore {
 public:
  explicit Watched(BlockStore& store) : DryRunStore(store, store.features()) {}

  Result<BlockRef> locate(const ObjectId& id) override { return ++located, DryRunStore::locate(id); }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override {
    return ++blocks, DryRunStore::load_block(block);
  }
  ObjectId id_of(ByteView object) const override {
    ++hashed;
    if (stop_at_hash) stop.request_stop();
    return DryRunStore::id_of(object);
  }

  std::atomic<int> located{0}, blocks{0};
  mutable std::atomic<int> hashed{0};
  bool stop_at_hash = false;
  mutable std::stop_source stop;
};

std::uint32_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("hard links are links, over directories and windows", "[restore]") {
  Trees trees;
  // 256 directories end a window.
  std::vector<Node> nodes = {trees.linked(trees.file("a", "one"), 4)};
  for (int i = 0; i < 300; ++i) nodes.push_back(trees.directory(fmt::format("m{:03}", i), {}));
  nodes.push_back(trees.directory("y", {trees.linked(trees.file("b", "one"), 4)}));
  nodes.push_back(trees.linked(trees.file("z", "one"), 4));
  CHECK(trees.restore(nodes).files == 3);
  CHECK(trees.recorder.failed.empty());
  CHECK(trees.same_inode("a", "y/b"));
  CHECK(trees.same_inode("a", "z"));
  CHECK(trees.text("z") == "one");
}

TEST_CASE("hard links are links, over directories of one window", "[restore]") {
  Trees trees;
  const Node other = trees.linked(trees.file("o", "other"), 2, 8);
  Node c = trees.linked(trees.file("c", "one"), 3), p = other;
  p.name = "p";
  trees.restore({trees.linked(trees.file("a", "one"), 3), trees.linked(trees.file("b", "one"), 3),
                 trees.directory("d", {c, p}), other});
  CHECK(trees.recorder.failed.empty());
  CHECK(trees.same_inode("a", "b"));
  CHECK(trees.same_inode("a", "d/c"));
  CHECK(trees.same_inode("o", "d/p"));
  CHECK_FALSE(trees.same_inode("a", "o"));
  CHECK(trees.text("d/c") == "one");
}

TEST_CASE("names of one file that were saved with different content are different files", "[restore]") {
  Trees trees;
  // The file was written while the backup was between its names.
  std::vector<Node> nodes = {trees.linked(trees.file("a", "old"), 7), trees.linked(trees.file("b", "new"), 7),
                             trees.linked(trees.file("c", "new"), 7), trees.linked(trees.file("d", "old"), 7),
                             trees.linked(trees.node("e", NodeType::fifo), 7)};
  for (const char* name : {"f", "g"}) {
    Node link = trees.linked(trees.node(name, NodeType::symlink), 7);
    link.target = name;
    nodes.push_back(link);
  }
  const RestoreStats stats = trees.restore(nodes);
  CHECK(trees.recorder.failed.empty());
  CHECK(stats.files == 4);
  CHECK(stats.others == 3);
  CHECK(trees.text("a") == "old");
  CHECK(trees.text("b") == "new");
  CHECK(trees.same_inode("a", "d"));
  CHECK(trees.same_inode("b", "c"));
  CHECK(fs::is_fifo(trees.at("e")));
  CHECK(fs::read_symlink(trees.at("f")) == "f");
  CHECK(fs::read_symlink(trees.at("g")) == "g");
}

TEST_CASE("a name that cannot be linked gets content of its own", "[restore]") {
  Trees trees;
  const Unprivileged bound(trees.dir);
  // By the time of the next window nobody may look into the directory of the first name.
  std::vector<Node> nodes = {trees.directory(
      "closed",
      {trees.linked(trees.file("a", "one"), 3), trees.linked(trees.node("f", NodeType::fifo), 2, 8)}, 0)};
  for (int i = 0; i < 300; ++i) nodes.push_back(trees.directory(fmt::format("m{:03}", i), {}));
  nodes.push_back(trees.linked(trees.node("w", NodeType::fifo), 2, 8));
  nodes.push_back(trees.linked(trees.file("y", "one"), 3));
  nodes.push_back(trees.linked(trees.file("z", "one"), 3));
  const RestoreStats stats = trees.restore(nodes);
  CHECK(trees.recorder.failed.empty());
  CHECK(stats.files == 3);
  CHECK(stats.others == 2);
  CHECK(trees.text("y") == "one");
  CHECK(trees.same_inode("y", "z"));
  CHECK(fs::is_fifo(trees.at("w")));
  REQUIRE(::chmod(trees.at("closed").c_str(), 0700) == 0);
  CHECK(trees.text("closed/a") == "one");
}

TEST_CASE("where the first name of a file fails, the next gets its content", "[restore]") {
  Trees trees;
  // No file can replace a directory with something in it.
  trees.put("a/in the way", "x");
  trees.put("b/in the way", "x");
  trees.restore({trees.linked(trees.file("a", "one"), 5), trees.linked(trees.file("b", "one"), 5),
                 trees.linked(trees.file("c", "one"), 5), trees.linked(trees.file("d", "one"), 5),
                 trees.directory("e", {trees.linked(trees.file("f", "one"), 5)})});
  CHECK(trees.recorder.failed.size() == 2);
  CHECK(trees.recorder.failed.count("a") + trees.recorder.failed.count("b") == 2);
  CHECK(trees.text("c") == "one");
  CHECK(trees.same_inode("c", "d"));
  CHECK(trees.same_inode("c", "e/f"));
}

TEST_CASE("a name of a FIFO that fails does not take the others with it", "[restore]") {
  Trees trees;
  trees.put("a/in the way", "x");
  std::vector<Node> nodes;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(trees.linked(trees.node(name, NodeType::fifo), 3));
  const RestoreStats stats = trees.restore(nodes);
  CHECK(stats.failed == 1);
  CHECK(stats.others == 2);
  CHECK(trees.same_inode("b", "c"));
}

TEST_CASE("a file larger than a window can be what a failed first name leaves to the second", "[restore]") {
  Trees trees;
  const std::vector<Extent> content(20, trees.data(testing::random_bytes(1, 4 << 20)));
  trees.put("a/in the way", "x");
  trees.restore({trees.linked(trees.file("a", content), 3), trees.linked(trees.file("b", content), 3),
                 trees.linked(trees.file("c", content), 3)});
  CHECK(trees.recorder.failed.size() == 1);
  CHECK(fs::file_size(trees.at("b")) == 20 * (4 << 20));
  CHECK(trees.same_inode("b", "c"));
}

TEST_CASE("a file is forgotten with the last of its names", "[restore]") {
  Trees trees;
  // No more than two names, says the tree, and then there is a third: the inode was used again.
  trees.restore({trees.linked(trees.file("a", "one"), 2), trees.linked(trees.file("b", "one"), 2),
                 trees.linked(trees.file("c", "one"), 2)});
  CHECK(trees.same_inode("a", "b"));
  CHECK_FALSE(trees.same_inode("a", "c"));
  CHECK(trees.text("c") == "one");
}

TEST_CASE("a kept file becomes a link's target only if it has the content", "[restore]") {
  Trees trees;
  trees.request.overwrite = Overwrite::if_changed;
  const Extent hole{Extent::Kind::hole, 100'000, {}};
  const Extent data = trees.data(testing::random_bytes(3, 5000));
  const auto tree = [&] {
    return std::vector<Node>{trees.linked(trees.file("a", "right"), 2),
                             trees.linked(trees.file("b", "right"), 2),
                             trees.linked(trees.file("s", {hole, data, hole}), 2, 8),
                             trees.linked(trees.file("t", {hole, data, hole}), 2, 8)};
  };
  trees.restore(tree());
  SECTION("it has it") {
    fs::remove(trees.at("b"));
    fs::remove(trees.at("t"));
    CHECK(trees.restore(tree()).unchanged == 2);
    CHECK(trees.same_inode("a", "b"));
    CHECK(trees.same_inode("s", "t"));
  }
  SECTION("size and time fit, but it is another's") {
    fs::remove(trees.at("b"));
    trees.put("a", "wrong");
    CHECK(trees.restore(tree()).unchanged == 3);
    CHECK(trees.text("a") == "wrong");
    CHECK(trees.text("b") == "right");
  }
  SECTION("where a hole should be there is something") {
    fs::remove(trees.at("t"));
    const Fd fd(::open(trees.at("s").c_str(), O_WRONLY | O_CLOEXEC));
    require_ok(write_all_at(fd.get(), as_bytes("!"), 150'000, "s"));
    const timespec time{kTime.seconds, kTime.nanoseconds};
    const timespec times[2] = {time, time};
    REQUIRE(::futimens(fd.get(), times) == 0);
    CHECK(trees.restore(tree()).unchanged == 3);
    CHECK_FALSE(trees.same_inode("s", "t"));
    CHECK(value_of(read_file(trees.at("t"), 1 << 20))[150'000] == 0);
  }
  CHECK(trees.recorder.failed.empty());
}

TEST_CASE("a kept file becomes a link to a name that was restored, if it has the content", "[restore]") {
  Trees trees;
  trees.request.overwrite = Overwrite::if_changed;
  const std::vector<Node> tree = {trees.linked(trees.file("a", "right"), 3),
                                  trees.linked(trees.file("b", "right"), 3),
                                  trees.linked(trees.file("c", "right"), 3)};
  const auto restore = [&] {
    trees.request.dry_run = true;
    const RestoreStats dry = trees.restore(tree);
    const auto told = trees.recorder.done;
    trees.request.dry_run = false;
    const RestoreStats stats = trees.restore(tree);
    CHECK(told == trees.recorder.done);
    CHECK(dry.bytes == stats.bytes);
    CHECK(trees.recorder.failed.empty());
    return stats;
  };
  trees.restore(tree);
  SECTION("it has it") {
    fs::remove(trees.at("a"));
    CHECK(restore().unchanged == 0);
    CHECK(trees.same_inode("a", "b"));
    CHECK(trees.same_inode("a", "c"));
  }
  SECTION("it has not") {
    fs::remove(trees.at("a"));
    fs::remove(trees.at("b"));
    trees.put("b", "wrong");
    CHECK(restore().unchanged == 1);
    CHECK(trees.text("b") == "wrong");
    CHECK(trees.same_inode("a", "c"));
  }
  SECTION("it is one already") {
    fs::remove(trees.at("b"));
    CHECK(restore().unchanged == 2);
    CHECK(trees.same_inode("a", "b"));
    CHECK(trees.same_inode("a", "c"));
  }
  SECTION("all are there") { CHECK(restore().unchanged == 3); }
}

TEST_CASE("a read-only directory of ours can be restored again", "[restore]") {
  Trees trees;
  const Unprivileged bound(trees.dir);
  const auto tree = [&](std::string_view text) {
    return std::vector<Node>{
        trees.directory("closed", {trees.directory("in", {trees.file("g", text)}, 0)}, 0),
        trees.directory("read-only", {trees.file("f", text)}, 0555)};
  };
  trees.restore(tree("one"));
  CHECK(trees.recorder.failed.empty());
  trees.restore(tree("two"));
  CHECK(trees.recorder.failed.empty());
  CHECK(trees.text("read-only/f") == "two");
  CHECK(mode_of(trees.at("read-only")) == 0555);
  CHECK(mode_of(trees.at("closed")) == 0);
  for (const char* directory : {"closed", "closed/in"})
    REQUIRE(::chmod(trees.at(directory).c_str(), 0700) == 0);
  CHECK(trees.text("closed/in/g") == "two");
}

TEST_CASE("a directory in a file's place goes with --delete, but for what the filters protect", "[restore]") {
  Trees trees;
  trees.put("a/sub/extra", "x");
  trees.put("l/sub/extra", "x");
  Node link = trees.node("l", NodeType::symlink);
  link.target = "a";
  const auto tree = [&] { return std::vector<Node>{trees.file("a", "one"), link}; };
  CHECK(trees.restore(tree()).failed == 2);
  CHECK(trees.exists("a/sub/extra"));
  trees.request.delete_extra = true;
  trees.request.excludes.add("extra");
  CHECK(trees.restore(tree()).failed == 2);
  CHECK(trees.exists("a/sub/extra"));
  CHECK(trees.exists("l/sub/extra"));
  trees.request.excludes = {};
  CHECK(trees.restore(tree()).failed == 0);
  CHECK(trees.text("a") == "one");
  CHECK(fs::is_symlink(trees.at("l")));
}

TEST_CASE("a file in a directory's place goes or stays as --overwrite says", "[restore]") {
  const Timestamp older{kTime.seconds - 1, 0}, newer{kTime.seconds + 1, 0};
  const auto [overwrite, mtime, goes] = GENERATE_COPY(table<Overwrite, Timestamp, bool>({
      {Overwrite::always, newer, true},
      {Overwrite::if_changed, newer, true},
      {Overwrite::if_newer, older, true},
      {Overwrite::if_newer, newer, false},
      {Overwrite::never, older, false},
  }));
  Trees trees;
  trees.request.overwrite = overwrite;
  trees.put("d", "mine", mtime);
  trees.restore({trees.directory("d", {trees.file("f", "one")})});
  CHECK(trees.recorder.failed.size() == (goes ? 0 : 1));
  if (goes) CHECK(trees.text("d/f") == "one");
  if (!goes) CHECK(trees.text("d") == "mine");
}

TEST_CASE("--delete with --include takes what matches in every directory, and nothing else", "[restore]") {
  Trees trees;
  trees.request.delete_extra = true;
  trees.request.includes.add("*.o");
  for (const char* path : {"x.o", "x", "d/x.o", "d/x", "d/e/x.o", "junk/x.o", "junk/x", "d/all.o/x"})
    trees.put(path, "extra");
  const std::vector<Node> tree = {
      trees.directory("d", {trees.directory("e", {trees.file("f", "one")}), trees.file("f", "one")}),
      trees.directory("empty", {})};
  const bool dry = GENERATE(true, false);
  trees.request.dry_run = dry;
  const RestoreStats stats = trees.restore(tree);
  CHECK(trees.recorder.failed.empty());
  CHECK(stats.deleted == 6);  // a directory that matches, and what is in it
  for (const char* path : {"x.o", "d/x.o", "d/e/x.o", "junk/x.o", "d/all.o"}) {
    INFO(path);
    CHECK(trees.exists(path) == dry);
  }
  for (const char* path : {"x", "d/x", "junk/x"}) CHECK(trees.exists(path));
  // Nothing of the tree is wanted, so nothing of it is made.
  CHECK(stats.directories == 0);
  CHECK_FALSE(trees.exists("empty"));
  CHECK_FALSE(trees.exists("d/f"));
}

TEST_CASE("a dry run tells what a restore then does", "[restore]") {
  Trees trees;
  trees.request.includes.add("*.o");
  trees.put("there/g.o", "old");
  const std::vector<Node> tree = {
      trees.directory("empty", {}),
      trees.directory("new", {trees.directory("deep", {trees.file("f.o", "one")})}),
      trees.directory("there", {trees.file("g", "one")})};
  trees.request.dry_run = true;
  const RestoreStats dry = trees.restore(tree);
  const auto told = trees.recorder.done;
  CHECK_FALSE(trees.exists("new"));
  trees.request.dry_run = false;
  const RestoreStats stats = trees.restore(tree);
  CHECK(told == trees.recorder.done);
  CHECK(dry.directories == stats.directories);
  CHECK(stats.directories == 2);
  CHECK(dry.files == stats.files);
  CHECK(dry.bytes == stats.bytes);
}

TEST_CASE("a stop amid a large file ends the restore, and is no fault of the file", "[restore]") {
  Trees trees;
  const std::vector<Extent> content(40, trees.data(testing::random_bytes(1, 4 << 20)));
  struct Stopper : Recorder {
    void on_bytes(std::uint64_t) override { stop.request_stop(); }
    std::stop_source stop;
  } stopper;
  trees.request.tree = trees.tree({trees.file("large", content)});
  const auto result = kin::restore(trees.repository(), trees.request, stopper, stopper.stop.get_token());
  CHECK(code_of(result) == ErrorCode::cancelled);
  CHECK(stopper.failed.empty());
  CHECK(fs::is_empty(trees.request.target));
}

TEST_CASE("--verify reads holes as well as data", "[restore]") {
  Trees trees;
  const Extent hole{Extent::Kind::hole, 70'000, {}};
  const std::vector<Extent> content = {hole, trees.data(testing::random_bytes(1, 3000)), hole};
  // Spoils the file as soon as its content is written, in the hole before it.
  struct Meddler : Recorder {
    void on_bytes(std::uint64_t) override {
      const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (spoil && ::pwrite(fd.get(), "!", 1, 5) != 1) std::abort();
    }
    std::string path;
    bool spoil = false;
  } meddler;
  meddler.path = trees.at("f");
  meddler.spoil = GENERATE(false, true);
  trees.request.verify = true;
  trees.request.tree = trees.tree({trees.file("f", content)});
  const RestoreStats stats = value_of(kin::restore(trees.repository(), trees.request, meddler, {}));
  CHECK(stats.verified == (meddler.spoil ? 0 : 1));
  CHECK(stats.files == (meddler.spoil ? 0 : 1));
  CHECK(stats.failed == (meddler.spoil ? 1 : 0));
  CHECK(trees.exists("f") != meddler.spoil);
}

TEST_CASE("--verify reads files that their owner may not read", "[restore]") {
  Trees trees;
  const Unprivileged bound(trees.dir);
  std::vector<Node> nodes = {trees.file("empty", std::vector<Extent>{}), trees.file("f", "one"),
                             trees.file("there", "two")};
  for (Node& node : nodes) node.mode = 0;
  trees.put("there", "before");
  trees.request.verify = true;
  const RestoreStats stats = trees.restore(nodes);
  CHECK(trees.recorder.failed.empty());
  CHECK(stats.verified == 3);
  CHECK(mode_of(trees.at("f")) == 0);
  REQUIRE(::chmod(trees.at("there").c_str(), 0600) == 0);
  CHECK(trees.text("there") == "two");
}

TEST_CASE("a stop while files are read back ends that too, and is no fault of theirs", "[restore]") {
  Trees trees;
  Watched store(trees.repository());
  store.stop_at_hash = true;
  const std::vector<Extent> content(20, trees.data(testing::random_bytes(1, 1 << 20)));
  const std::vector<Node> nodes = {trees.linked(trees.file("a", content), 2),
                                   trees.linked(trees.file("b", content), 2)};
  SECTION("by --verify") { trees.request.verify = true; }
  SECTION("because they were there already") {
    trees.restore(nodes);
    fs::remove(trees.at("b"));
    trees.request.overwrite = Overwrite::if_changed;
  }
  trees.request.tree = trees.tree(nodes);
  const auto result = kin::restore(store, trees.request, trees.recorder, store.stop.get_token());
  CHECK(code_of(result) == ErrorCode::cancelled);
  CHECK(trees.recorder.failed.empty());
  CHECK(store.hashed == 1);
  CHECK_FALSE(trees.exists("b"));
}

TEST_CASE("what is only for a file that has failed is not read", "[restore]") {
  Trees trees;
  Watched store(trees.repository());
  trees.request.jobs = 1;
  const std::string too_long(300, 'x');  // for any file system
  SECTION("in its window") {
    std::vector<Extent> content;
    for (unsigned i = 0; i < 16; ++i) content.push_back(trees.data(testing::random_bytes(i, 1000)));
    trees.request.tree = trees.tree({trees.file("a", {content.back()}), trees.file(too_long, content)});
    CHECK(value_of(kin::restore(store, trees.request, trees.recorder, {})).failed == 1);
    CHECK(store.blocks == 2);
    CHECK(fs::file_size(trees.at("a")) == 1000);
  }
  SECTION("in those that follow") {
    std::vector<Extent> extents(100, trees.data(testing::random_bytes(1, 4 << 20)));
    const std::vector<Extent> content =
        value_of(fold_extents(std::move(extents), [&](ObjectKind kind, const Bytes& bytes) {
          return testing::store_object(trees.repository(), bytes, kind);
        }));
    trees.request.tree = trees.tree({trees.file(too_long, {content.front(), content.front()})});
    CHECK(value_of(kin::restore(store, trees.request, trees.recorder, {})).failed == 1);
    CHECK(store.blocks == 1);
    CHECK(store.located == 16);  // 64 MiB
  }
  CHECK(trees.recorder.failed.size() == 1);
}

TEST_CASE("what is never to be touched is neither a target nor deleted nor replaced", "[restore]") {
  Trees trees;
  trees.put("own/config", "mine");
  trees.put("own/deep/config", "mine");
  trees.put("above/x", "extra");
  fs::rename(trees.at("own"), trees.at("above/own"));
  struct stat info {};
  REQUIRE(::stat(trees.at("above/own").c_str(), &info) == 0);
  trees.request.never_touch.emplace(info.st_dev, info.st_ino);
  trees.request.delete_extra = GENERATE(false, true);
  trees.request.dry_run = GENERATE(false, true);
  const Node config = trees.file("config", "theirs");
  const std::string target = trees.request.target;
  SECTION("as the target, or above it") {
    for (const char* path :
         {"above/own", "above/own/deep", "above/own/new", "above/./own/deep/..", "above/own/new/../new"}) {
      INFO(path);
      trees.request.target = target + "/" + path;
      trees.request.tree = trees.tree({config});
      CHECK(code_of(kin::restore(trees.repository(), trees.request, trees.recorder, {})) ==
            ErrorCode::invalid_argument);
    }
    fs::create_directory_symlink("above/own", target + "/link");
    trees.request.target = target + "/link";
    CHECK(code_of(kin::restore(trees.repository(), trees.request, trees.recorder, {})) ==
          ErrorCode::invalid_argument);
    trees.request.target = target;
  }
  SECTION("not in the tree") {
    trees.restore({trees.file("other", "x")});
    CHECK(trees.recorder.failed.empty());
    CHECK(trees.recorder.not_deleted.empty());
    CHECK(trees.recorder.left_alone.size() == (trees.request.delete_extra ? 1 : 0));
    CHECK(trees.exists("above/x") == (trees.request.dry_run || !trees.request.delete_extra));
  }
  SECTION("a directory in the tree") {
    trees.restore({trees.directory("above", {trees.directory("own", {config}), trees.file("x", "extra")})});
    CHECK(trees.recorder.failed.size() == 1);
    CHECK(trees.recorder.failed.contains("above/own"));
  }
  SECTION("a directory in the tree, of which a part is wanted") {
    trees.request.includes.add("config");
    trees.restore({trees.directory("above", {trees.directory("own", {config})})});
    CHECK(trees.recorder.left_alone == std::vector<std::string>{"above/own"});
  }
  SECTION("a file in the tree") {
    trees.restore({trees.directory("above", {trees.file("own", "x")})});
    CHECK(trees.recorder.failed.contains("above/own"));
  }
  SECTION("below a file in the tree") {
    trees.restore({trees.file("above", "x")});
    CHECK(trees.recorder.failed.contains("above"));
  }
  CHECK(trees.text("above/own/config") == "mine");
  CHECK(trees.text("above/own/deep/config") == "mine");
  CHECK_FALSE(trees.exists("above/own/new"));
}

TEST_CASE("a dry run tells of what is in the way as a restore does", "[restore]") {
  Trees trees;
  trees.request.overwrite = GENERATE(Overwrite::always, Overwrite::if_newer, Overwrite::never);
  trees.request.delete_extra = GENERATE(false, true);
  trees.request.excludes.add("protected");
  trees.put("dir", "a file");
  trees.put("above/dir", "a file");
  trees.put("file/x", "x");
  trees.put("file/y/z", "z");
  trees.put("guarded/protected", "x");
  fs::create_directory(trees.at("empty"));
  const std::vector<Node> tree = {
      trees.directory("above", {trees.directory("dir", {trees.file("f", "f")})}),
      trees.directory("dir", {trees.file("f", "f")}),
      trees.file("empty", "one"),
      trees.file("file", "one"),
      trees.file("guarded", "one"),
      trees.linked(trees.file("l", "linked"), 3),
      trees.linked(trees.file("m", "linked"), 3),
  };
  trees.request.dry_run = true;
  const RestoreStats dry = trees.restore(tree);
  const auto told = trees.recorder.done;
  const auto told_failed = trees.recorder.failed;
  CHECK(trees.exists("file/x"));
  trees.request.dry_run = false;
  const RestoreStats stats = trees.restore(tree);
  CHECK(told == trees.recorder.done);
  CHECK(told_failed == trees.recorder.failed);
  CHECK(dry.bytes == stats.bytes);
  CHECK(dry.deleted == stats.deleted);
  CHECK(dry.files == stats.files);
  CHECK(dry.failed == stats.failed);
}

TEST_CASE("--delete takes what matches in a directory that has the name of a file", "[restore]") {
  Trees trees;
  trees.request.delete_extra = true;
  trees.request.includes.add("a");
  trees.put("b/a", "extra");
  trees.put("b/c", "extra");
  trees.request.dry_run = GENERATE(true, false);
  CHECK(trees.restore({trees.file("b", "one")}).deleted == 1);
  CHECK(trees.exists("b/a") == trees.request.dry_run);
  CHECK(trees.exists("b/c"));
}

TEST_CASE("--delete goes into read-only directories of ours, and names what it cannot delete", "[restore]") {
  Trees trees;
  trees.put("extra/sub/f", "x");
  trees.put("stays/kept", "x");
  trees.put("stays/sub/f", "x");
  trees.put("foreign/sub/f", "x");
  const Unprivileged bound(trees.dir);
  for (const char* path : {"extra/sub", "extra", "stays", "foreign/sub"})
    REQUIRE(::chmod(trees.at(path).c_str(), 0555) == 0);
  trees.request.delete_extra = true;
  trees.request.excludes.add("kept");
  const bool foreign = ::getuid() == 0;
  if (foreign) {
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(::chown(trees.at("foreign/sub").c_str(), 0, 0) == 0);
    REQUIRE(::seteuid(65534) == 0);
  }
  const RestoreStats stats = trees.restore({trees.file("f", "one")});
  CHECK(trees.recorder.failed.empty());
  CHECK_FALSE(trees.exists("extra"));
  CHECK_FALSE(trees.exists("stays/sub"));
  CHECK(trees.exists("stays/kept"));
  CHECK(mode_of(trees.at("stays")) == 0555);
  REQUIRE(::chmod(trees.at("stays").c_str(), 0755) == 0);
  if (!foreign) return;
  CHECK(stats.not_deleted == 1);
  CHECK(trees.recorder.not_deleted["foreign/sub/f"] == "cannot delete foreign/sub/f: Permission denied");
}

TEST_CASE("a stop gives read-only directories their mode back", "[restore]") {
  Trees trees;
  trees.put("d/sub/f", "old");
  const Unprivileged bound(trees.dir);
  for (const char* path : {"d/sub", "d"}) REQUIRE(::chmod(trees.at(path).c_str(), 0555) == 0);
  const std::vector<Extent> content(40, trees.data(testing::random_bytes(1, 4 << 20)));
  struct Stopper : Recorder {
    void on_bytes(std::uint64_t) override { stop.request_stop(); }
    std::stop_source stop;
  } stopper;
  trees.request.tree =
      trees.tree({trees.directory("d", {trees.directory("sub", {trees.file("f", content)}, 0700)}, 0700)});
  CHECK(code_of(kin::restore(trees.repository(), trees.request, stopper, stopper.stop.get_token())) ==
        ErrorCode::cancelled);
  CHECK(mode_of(trees.at("d")) == 0555);
  CHECK(mode_of(trees.at("d/sub")) == 0555);
  CHECK(trees.text("d/sub/f") == "old");
  CHECK(std::distance(fs::directory_iterator(trees.at("d/sub")), {}) == 1);  // nothing half written
  for (const char* path : {"d", "d/sub"}) REQUIRE(::chmod(trees.at(path).c_str(), 0755) == 0);
}

}  // namespace kin
