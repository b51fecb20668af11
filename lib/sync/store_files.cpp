#include "lib/sync/store_files.h"

#include "lib/sync/content_files.h"

#include <algorithm>
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

namespace kin::sync {
namespace {

constexpr std::size_t kCopyBytes = 256 << 10;

class UnchangedFileSource : public ByteSource {
 public:
  UnchangedFileSource(Fd fd, std::string path, const Fingerprint& fingerprint)
      : fd_(std::move(fd)), path_(std::move(path)), fingerprint_(fingerprint) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    KIN_TRY_ASSIGN(const std::size_t size, read_up_to(fd_.get(), into, path_));
    done_ += size;
    if (size == into.size() && done_ < fingerprint_.size) return size;
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return errno_error("cannot look at", path_);
    if (done_ > fingerprint_.size || fingerprint_of(info) != fingerprint_) return not_as_it_was(path_);
    return size;
  }

 private:
  const Fd fd_;
  const std::string path_;
  const Fingerprint fingerprint_;
  std::uint64_t done_ = 0;
};

// How many it was.
Result<std::uint64_t> copy_bytes(ByteSource& from, int to, const std::string& path) {
  std::uint64_t copied = 0;
  for (Bytes piece(kCopyBytes);;) {
    KIN_TRY_ASSIGN(const std::size_t size, from.read(piece));
    KIN_TRY(write_all(to, ByteView(piece).first(size), path));
    copied += size;
    if (size < piece.size()) return copied;
  }
}

}  // namespace

Fingerprint fingerprint_of(const struct stat& info) {
  const auto seconds = static_cast<std::uint64_t>(info.st_mtim.tv_sec);
  const auto nanoseconds = static_cast<std::uint64_t>(info.st_mtim.tv_nsec);
  return {info.st_ino, static_cast<std::uint64_t>(info.st_size),
          static_cast<std::int64_t>(seconds * 1'000'000'000 + nanoseconds)};
}

Error not_as_it_was(const std::string& path) {
  return Error(ErrorCode::busy, printable(path) + " is not as it was");
}

std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  for (bool more = !path.empty(); more;) {
    const std::size_t slash = path.find('/');
    components.emplace_back(path.substr(0, slash));
    more = slash != std::string_view::npos;
    if (more) path.remove_prefix(slash + 1);
  }
  return components;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty()) path += '/';
  return path.append(name);
}

std::vector<std::string_view> split_words(std::string_view text, std::size_t most) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  while (words.size() < most) {
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    words.push_back(text.substr(0, text.find_first_of(kSpace)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

Result<void> for_each_name(int directory, const std::string& path, const OnName& on_name) {
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return errno_error("cannot list", path);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), ::closedir);
  if (!stream) {
    const int failed = errno;
    ::close(own);
    return errno_error("cannot list", path, failed);
  }
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return errno_error("cannot list", path);
    if (entry == nullptr) return {};
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !on_name(name, entry->d_type)) return {};
  }
}

Result<void> sync_directory(int directory, const std::string& path) {
  // Some file systems have nothing to sync there.
  if (::fsync(directory) != 0 && errno != EINVAL) return errno_error("cannot sync", path);
  return {};
}

Result<void> make_root(const std::string& root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) == 0) return {};
  KIN_TRY(make_directories(root, 0700));
  const std::string above = root + "/..";
  const Fd parent(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent) return sync_directory(parent.get(), above);
  ::sync();  // we may not read it
  return {};
}

int rename_to_free_name(int from_directory, const std::string& from, int directory, const std::string& to) {
  if (::renameat2(from_directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  const auto is_not_supported = [](int why) { return why == EINVAL || why == ENOSYS || why == EOPNOTSUPP; };
  if (!is_not_supported(errno)) return errno;
  // A file system that cannot: a link never replaces anything either.
  if (::linkat(from_directory, from.c_str(), directory, to.c_str(), 0) == 0)
    return ::unlinkat(from_directory, from.c_str(), 0) == 0 ? 0 : errno;
  if (!is_not_supported(errno) && errno != EPERM) return errno;
  // Some of FUSE have neither. A name that cannot be is refused by the rename as well.
  struct stat info {};
  if (::fstatat(directory, to.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;
  return ::renameat(from_directory, from.c_str(), directory, to.c_str()) == 0 ? 0 : errno;
}

Result<std::size_t> FileView::read(std::span<std::uint8_t> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), limit_ - at_)));
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to_at(fd_, into, at_, path_));
  at_ += size;
  return size;
}

std::unique_ptr<ByteSource> file_source(Fd fd, std::string path, const Fingerprint& fingerprint) {
  return std::make_unique<UnchangedFileSource>(std::move(fd), std::move(path), fingerprint);
}

Result<std::unique_ptr<ByteSource>> content_source(const StoreChange& change) {
  if (!change.content_path.empty()) return open_file_source(change.content_path);
  return std::unique_ptr<ByteSource>(std::make_unique<MemoryView>(change.content));
}

Result<std::uint64_t> write_content(const StoreChange& change, int to, const std::string& path) {
  if (change.content_path.empty()) {
    KIN_TRY(write_all(to, change.content, path));
    return change.content.size();
  }
  KIN_TRY_ASSIGN(const auto from, open_file_source(change.content_path));
  return copy_bytes(*from, to, path);
}

Result<struct stat> copy_file(int from, const Fingerprint& fingerprint, int to, const std::string& path) {
  FileView source(from, path);
  KIN_TRY(copy_bytes(source, to, path));
  struct stat info {};
  if (::fstat(from, &info) != 0) return errno_error("cannot look at", path);
  if (!S_ISREG(info.st_mode) || fingerprint_of(info) != fingerprint) return not_as_it_was(path);
  const timespec times[] = {info.st_atim, info.st_mtim};
  if (::fchmod(to, info.st_mode & kAllModes) != 0 || ::futimens(to, times) != 0 || ::fsync(to) != 0 ||
      ::fstat(to, &info) != 0)
    return errno_error("cannot write a copy of", path);
  return info;
}

Result<bool> same_bytes(ByteSource& a, ByteSource& b) {
  for (Bytes of_a(kCopyBytes), of_b(kCopyBytes);;) {
    KIN_TRY_ASSIGN(const std::size_t size_a, a.read(of_a));
    KIN_TRY_ASSIGN(const std::size_t size_b, b.read(of_b));
    if (!equal(ByteView(of_a).first(size_a), ByteView(of_b).first(size_b))) return false;
    if (size_a < of_a.size()) return true;
  }
}

}  // namespace kin::sync
