// What the kinds of stores have in common in their dealings with files: to find a name, to copy and compare
// contents, to give a name without taking it from another, to have a directory on the disk.
//
// Functions without state: any thread may call them. `path` is for messages. An Error has the code of
// errno_error() unless said otherwise, and what was begun is left for the caller to remove.
#pragma once

#include "lib/base/file.h"
#include "lib/container/byte_source.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace kin::sync {

// No symlink is followed, and no pipe is waited for.
inline constexpr int kOpenFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
inline constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
inline constexpr int kMakeFile = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

// Of a regular file. Times that are centuries away wrap, since they need only differ.
Fingerprint fingerprint_of(const struct stat& info);
// busy
Error not_as_it_was(const std::string& path);

// "a/b" is two; empty is none; what is not separated by one slash has empty ones among them.
std::vector<std::string> components_of(std::string_view path);
// The name alone, if the folder is the root.
std::string join_path(std::string_view folder, std::string_view name);
// The words of a text that are apart by white space: the first `most` of them.
std::vector<std::string_view> split_words(std::string_view text, std::size_t most);

// Every name in an open directory but "." and "..", with its d_type, until on_name says false.
using OnName = std::function<bool(std::string_view name, unsigned char type)>;
Result<void> for_each_name(int directory, const std::string& path, const OnName& on_name);

// The names in it are on the disk when this returns.
Result<void> sync_directory(int directory, const std::string& path);
// The directory that a store is in, if it is not there; on the disk too.
Result<void> make_root(const std::string& root);

// 0 or an errno; EEXIST if there is something under the new name, EXDEV if the two directories are on
// different file systems. Where a file system cannot do this in one step, both names are there for a moment;
// where it has no links either, what comes under the new name between a look and the rename is lost.
int rename_to_free_name(int from_directory, const std::string& from, int directory, const std::string& to);

// An open file that someone else keeps as long as it is read, with its path: from the beginning, wherever its
// position is, up to `limit_bytes`.
class FileView : public ByteSource {
 public:
  FileView(int fd, const std::string& path,
           std::uint64_t limit_bytes = std::numeric_limits<std::uint64_t>::max())
      : fd_(fd), path_(path), limit_(limit_bytes) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override;

 private:
  const int fd_;
  const std::string& path_;
  const std::uint64_t limit_;
  std::uint64_t at_ = 0;
};

// A file that has this fingerprint; busy instead of its end, if it has another by then.
std::unique_ptr<ByteSource> file_source(Fd fd, std::string path, const Fingerprint& fingerprint);
// What a change brings, which must outlive it.
Result<std::unique_ptr<ByteSource>> content_source(const StoreChange& change);
// Of what a change brings; returns how many bytes it was.
Result<std::uint64_t> write_content(const StoreChange& change, int to, const std::string& path);
// Copies an open file to a new one, with its permissions and mtime, and has that on the disk; says how it is.
// busy, if the file has not, or no longer, this fingerprint.
Result<struct stat> copy_file(int from, const Fingerprint& fingerprint, int to, const std::string& path);
Result<bool> same_bytes(ByteSource& a, ByteSource& b);

}  // namespace kin::sync
