#include "lib/sync/content_files.h"

#include "lib/base/file.h"
#include "lib/base/random.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {
namespace {

constexpr std::string_view kPart = ".part", kTemporary = ".tmp-";

class FileSource : public ByteSource {
 public:
  FileSource(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    return read_up_to(fd_.get(), into, path_);
  }

 private:
  Fd fd_;
  std::string path_;
};

Result<void> sync_path(const std::string& path, int flags) {
  const Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Result<void>() : errno_error("cannot open", path);
  if (::fsync(fd.get()) != 0) return errno_error("cannot write", path);
  return {};
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::vector<std::string> names_in(const std::string& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return {};
  auto names = list_directory(fd.get(), directory);
  return names ? *std::move(names) : std::vector<std::string>();
}

struct Hashed {
  ObjectId object;
  std::uint64_t size = 0;
};

Result<Hashed> hash_of(ByteSource& source) {
  Hasher hasher;
  Bytes buffer(256 << 10);
  for (Hashed out;;) {
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    hasher.add(ByteView(buffer).first(got));
    out.size += got;
    if (got == buffer.size()) continue;
    out.object.bytes = hasher.finish();
    return out;
  }
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return Error(ErrorCode::not_found, printable(path) + " is not there");
  if (!fd) return errno_error("cannot open", path);
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(fd), path));
}

Result<Bytes> read_all(ByteSource& source, std::uint64_t limit_bytes) {
  Bytes out, buffer(64 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    append(out, ByteView(buffer).first(got));
    if (out.size() > limit_bytes) return Error(ErrorCode::io, "there is more of it than there should be");
    if (got < buffer.size()) return out;
  }
}

std::string ContentFiles::path_of(const ObjectId& object) const { return directory_ + "/" + object.hex(); }

std::string ContentFiles::part_path(const ObjectId& object) const {
  return path_of(object) + std::string(kPart);
}

bool ContentFiles::has(const ObjectId& object) const { return ::access(path_of(object).c_str(), R_OK) == 0; }

Result<void> ContentFiles::make() {
  if (made_) return {};
  KIN_TRY(make_directories(directory_, 0700));
  made_ = true;
  return {};
}

Result<void> ContentFiles::put(const ObjectId& object, ByteSource& content) {
  // One that is there may be what a crash left of it; and it is to stay as long as a new one. That the source
  // is this content has to be seen in any case: it may be about to be replaced.
  if (has(object) && check(object)) {
    KIN_TRY_ASSIGN(const auto found, hash_of(content));
    if (found.object != object) return Error(ErrorCode::busy, "it has changed meanwhile");
    ::utimensat(AT_FDCWD, path_of(object).c_str(), nullptr, 0);
    unsynced_.push_back(path_of(object));
    return {};
  }
  KIN_TRY(make());
  const std::string path = path_of(object),
                    temporary = path + std::string(kTemporary) + std::to_string(random_number());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error("cannot make", temporary);
  const auto written = [&]() -> Result<void> {
    Bytes buffer(256 << 10);
    Hasher hasher;
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t got, content.read(buffer));
      hasher.add(ByteView(buffer).first(got));
      KIN_TRY(write_all(fd.get(), ByteView(buffer).first(got), temporary));
      if (got == buffer.size()) continue;
      if (hasher.finish() != object.bytes) return Error(ErrorCode::busy, "it has changed meanwhile");
      return fd.close(temporary);
    }
  }();
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = written ? errno_error("cannot rename", temporary) : written.error();
    ::unlink(temporary.c_str());
    return error;
  }
  unsynced_.push_back(path);
  return {};
}

Result<std::unique_ptr<ByteSource>> ContentFiles::open(const ObjectId& object) const {
  return open_file_source(path_of(object));
}

Result<std::uint64_t> ContentFiles::check(const ObjectId& object) const {
  KIN_TRY_ASSIGN(const auto source, open(object));
  KIN_TRY_ASSIGN(const auto found, hash_of(*source));
  if (found.object != object) return Error(ErrorCode::corrupt, "a file is not what its name says");
  return found.size;
}

std::uint64_t ContentFiles::part_bytes(const ObjectId& object) const { return size_of(part_path(object)); }

Result<void> ContentFiles::add_part(const ObjectId& object, std::uint64_t offset, ByteView bytes) {
  KIN_TRY(make());
  const std::string path = part_path(object);
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error("cannot make", path);
  if (offset > size_of(path)) return Error(ErrorCode::corrupt, "a piece of a content that has no beginning");
  KIN_TRY(write_all_at(fd.get(), bytes, offset, path));
  if (unsynced_.empty() || unsynced_.back() != path) unsynced_.push_back(path);
  return {};
}

Result<std::string> ContentFiles::finish_part(const ObjectId& object) {
  const std::string part = part_path(object), path = path_of(object);
  KIN_TRY_ASSIGN(const auto source, open_file_source(part));
  KIN_TRY_ASSIGN(const auto found, hash_of(*source));
  if (found.object != object) {
    ::unlink(part.c_str());
    return Error(ErrorCode::wrong_base, "a content did not come out as it was sent");
  }
  if (::rename(part.c_str(), path.c_str()) != 0) return errno_error("cannot rename", part);
  unsynced_.push_back(path);
  return path;
}

std::vector<std::pair<ObjectId, std::uint64_t>> ContentFiles::parts() const {
  std::vector<std::pair<ObjectId, std::uint64_t>> out;
  for (const std::string& name : names_in(directory_)) {
    if (!name.ends_with(kPart)) continue;
    const auto object = ObjectId::from_hex(std::string_view(name).substr(0, name.size() - kPart.size()));
    if (object) out.emplace_back(*object, size_of(directory_ + "/" + name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void ContentFiles::remove(const ObjectId& object) {
  ::unlink(path_of(object).c_str());
  ::unlink(part_path(object).c_str());
}

Result<void> ContentFiles::sync() {
  if (unsynced_.empty()) return {};
  for (const std::string& path : unsynced_) KIN_TRY(sync_path(path, O_RDONLY));
  unsynced_.clear();
  return sync_path(directory_, O_RDONLY | O_DIRECTORY);
}

void ContentFiles::remove_older_than(std::int64_t seconds) {
  const std::int64_t limit = std::time(nullptr) - seconds;
  for (const std::string& name : names_in(directory_)) {
    struct stat info {};
    const std::string path = directory_ + "/" + name;
    if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_mtime < limit)
      ::unlink(path.c_str());
  }
}

}  // namespace kin::sync
