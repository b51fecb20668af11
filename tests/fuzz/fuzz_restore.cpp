// Hostile snapshots, restored: whatever a tree says, nothing beside the target is touched.
//
// The first byte says how to restore; the rest are objects as in fuzz_wire_tree: each behind its length (two
// bytes), and known by its number, which is the first byte of its id. The first is the tree. The target has
// files, directories and links that lead out of it already.
#include "formats/formats.h"
#include "lib/base/check.h"
#include "lib/base/file.h"
#include "lib/engine/restore.h"
#include "tests/support/temp_dir.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace kin;
namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

class NumberedObjects : public BlockStore {
 public:
  explicit NumberedObjects(ByteView input) {
    while (input.size() >= 2 && objects_.size() < 256) {
      const std::size_t size = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
      const ByteView object = input.subspan(2, size);
      // The same bytes have one id.
      numbers_.emplace(Bytes(object.begin(), object.end()), static_cast<std::uint8_t>(objects_.size()));
      objects_.emplace_back(object.begin(), object.end());
      input = input.subspan(2 + size);
    }
  }

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override {
    // A small input may name one object very often; that is slow, but no bug.
    if (++loads_ > 1000 || !is_there(id)) return Error(ErrorCode::corrupt, "missing");
    return std::make_shared<const Bytes>(objects_[id.bytes[0]]);
  }
  Result<bool> contains(const ObjectId& id) override { return is_there(id); }
  Result<BlockRef> locate(const ObjectId& id) override {
    if (!is_there(id)) return Error(ErrorCode::corrupt, "missing");
    return BlockRef{id, 0, 100, objects_[id.bytes[0]].size()};
  }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override {
    if (++loads_ > 1000 || !is_there(block.pack)) return Error(ErrorCode::corrupt, "missing");
    const Bytes& bytes = objects_[block.pack.bytes[0]];
    return std::make_shared<const BlockContent>(
        std::vector<BlockObject>{{block.pack, ObjectKind::data, bytes.size(), {}}}, bytes, 0U);
  }
  Result<Chain> chain(const ObjectId&) override { return Chain{}; }
  ObjectId id_of(ByteView object) const override {
    const auto at = numbers_.find(Bytes(object.begin(), object.end()));
    ObjectId id;
    if (at == numbers_.end())
      id.bytes.fill(0xff);
    else
      id.bytes[0] = at->second;
    return id;
  }

  // Not of a restore.
  const Scanner& scanner() const override { std::abort(); }
  FeatureStore& features() override { std::abort(); }
  Result<bool> claim(const ObjectId&) override { std::abort(); }
  Result<std::uint64_t> append(const EncodedBlock&) override { std::abort(); }
  Result<void> flush() override { std::abort(); }
  Result<SnapshotId> commit(const Snapshot&) override { std::abort(); }

 private:
  bool is_there(const ObjectId& id) const {
    return id.bytes[0] < objects_.size() && id_of(objects_[id.bytes[0]]) == id;
  }

  std::vector<Bytes> objects_;
  std::map<Bytes, std::uint8_t> numbers_;
  std::atomic<int> loads_ = 0;
};

void put(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  KIN_CHECK(fd && write_all(fd.get(), as_bytes(text), path).has_value());
}

// All that is beside the target, and must stay as it is.
class Surroundings {
 public:
  Surroundings() : path_(dir_ / "outer") {
    fs::create_directory(path_);
    fs::create_directory(path_ + "/other");
    put(path_ + "/secret", "secret\n");
    put(path_ + "/other/a", "another's\n");
    if (::geteuid() == 0)
      for (const char* const name : {"", "/outer"})
        KIN_CHECK(::chown((dir_.path() + name).c_str(), kNobody, kNobody) == 0);
    before_ = view();
  }
  std::string target() const { return path_ + "/target"; }

  // As an unprivileged user makes it.
  void make_target() const {
    fs::create_directory(target());
    fs::create_directory(target() + "/b");
    put(target() + "/a", "was there\n");
    fs::create_symlink("..", target() + "/c");
    fs::create_symlink("../secret", target() + "/d");
    fs::create_hard_link(target() + "/a", target() + "/b/a");
    fs::create_symlink("../../other", target() + "/b/b");
  }
  void remove_target() const {
    // What was restored without rights to read it is removed by who may.
    std::error_code ignored;
    fs::remove_all(target(), ignored);
    if (fs::exists(fs::symlink_status(target()))) {
      KIN_CHECK(std::system(("chmod -R u+rwX '" + target() + "' && rm -rf '" + target() + "'").c_str()) == 0);
    }
  }
  bool are_unchanged() const { return view() == before_; }

 private:
  std::map<std::string, std::string> view() const {
    std::map<std::string, std::string> out;
    for (const char* const name : {"secret", "other", "other/a"}) {
      struct stat info {};
      if (::lstat((path_ + "/" + name).c_str(), &info) != 0) continue;
      out[name] = std::to_string(info.st_ino) + " " + std::to_string(info.st_mode) + " " +
                  std::to_string(info.st_uid) + " " + std::to_string(info.st_nlink) + " " +
                  std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + " " +
                  std::to_string(info.st_mtim.tv_nsec) + " " + std::to_string(info.st_ctim.tv_nsec);
    }
    for (const char* const name : {"", "/other"})
      for (const auto& entry : fs::directory_iterator(path_ + name))
        if (entry.path() != target()) out["/" + entry.path().string()];
    return out;
  }

  testing::TempDir dir_;
  std::string path_;
  std::map<std::string, std::string> before_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Surroundings* const surroundings = [] {
    // A file may say that it is as large as it likes; that fills a disk, and is no finding.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{1 << 20, RLIM_INFINITY};
    KIN_CHECK(::setrlimit(RLIMIT_FSIZE, &most) == 0);
    static const Surroundings made;
    return &made;
  }();
  // Not as root: a fault would be one of the machine.
  const bool was_root = ::geteuid() == 0;
  if (was_root) KIN_CHECK(::seteuid(kNobody) == 0);
  surroundings->make_target();
  NumberedObjects objects({data + 1, size - 1});
  RestoreRequest request;
  request.formats = formats::all();
  request.target = surroundings->target();
  request.overwrite = static_cast<Overwrite>(data[0] % 4);
  request.delete_extra = (data[0] & 4) != 0;
  request.sparse = (data[0] & 8) != 0;
  request.verify = (data[0] & 16) != 0;
  if ((data[0] & 32) != 0) request.only_name = "b";
  request.jobs = 1;
  RestoreObserver observer;
  const auto restored = restore(objects, request, observer, {});
  if (was_root) KIN_CHECK(::seteuid(0) == 0);
  KIN_CHECK(surroundings->are_unchanged());
  surroundings->remove_target();
  return 0;
}
