#include "lib/engine/file_reader.h"

#include "lib/engine/previous_members.h"
#include "lib/engine/source_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kin {
namespace {

constexpr const char* kHasHoles = "the file has holes";  // which a recipe would not keep

FilePart hole_part(std::uint64_t size) {
  FilePart part;
  part.extents.push_back({Extent::Kind::hole, size, {}});
  part.size = size;
  return part;
}

}  // namespace

FileReader::FileReader(BlockStore& store, const Formats& formats, std::stop_token stop)
    : stop_(std::move(stop)),
      segmenter_(store),
      opener_(store, formats, segmenter_, stop_),
      opens_(!formats.containers.empty()) {}

Result<std::uint64_t> FileReader::read_run(const Segmenter::Read& read, std::uint64_t limit,
                                           const Emit& emit) {
  return segmenter_.run(read, limit, [&](NewObject object) {
    FilePart part;
    part.extents.push_back({Extent::Kind::data, object.bytes.size(), object.id});
    const std::uint64_t again = std::min<std::uint64_t>(read_before_, object.bytes.size());
    read_before_ -= again;
    part.size = object.bytes.size() - again;
    part.objects.push_back(std::move(object));
    return emit(std::move(part));
  });
}

Result<std::optional<std::uint64_t>> FileReader::read_container(int fd, std::uint64_t limit,
                                                                const std::string& path,
                                                                const std::optional<Extent>& before,
                                                                const Emit& emit) {
  class File : public ByteSource {
   public:
    File(int fd, std::uint64_t limit, const std::string& path) : fd_(fd), left_(limit), path_(path) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
      into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_)));
      KIN_TRY_ASSIGN(const std::size_t got, read_up_to(fd_, into, path_));
      left_ -= got;
      unreported_ += got;
      return got;
    }
    std::uint64_t take_unreported() {
      reported_ += unreported_;
      return std::exchange(unreported_, 0);
    }
    std::uint64_t reported() const { return reported_; }

   private:
    const int fd_;
    std::uint64_t left_;
    const std::string& path_;
    std::uint64_t unreported_ = 0, reported_ = 0;
  };
  std::array<std::uint8_t, kHeadBytes> head;
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to_at(fd, head, 0, path));
  if (opener_.detect(ByteView(head).first(size)) == nullptr) return std::optional<std::uint64_t>();
  File file(fd, limit, path);
  KIN_TRY_ASSIGN(const std::optional<Extent> extent, opener_.open(
                                                         file,
                                                         [&](NewObject object) {
                                                           FilePart part;
                                                           part.size = file.take_unreported();
                                                           part.objects.push_back(std::move(object));
                                                           return emit(std::move(part));
                                                         },
                                                         &counts_, before));
  if (!extent) {
    read_before_ = file.reported();
    if (::lseek(fd, 0, SEEK_SET) < 0) return errno_error("cannot read", path);
    return std::optional<std::uint64_t>();
  }
  FilePart part;
  part.size = file.take_unreported();
  part.extents.push_back(*extent);
  if (!emit(std::move(part))) return interrupted();
  return std::optional(extent->size);
}

Result<void> FileReader::count_sparse(int fd, const std::string& path) {
  std::array<std::uint8_t, kHeadBytes> head;
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to_at(fd, head, 0, path));
  if (const ContainerFormat* const format = opener_.detect(ByteView(head).first(size)))
    counts_.add_closed(format->name, kHasHoles);
  return {};
}

Result<std::uint64_t> FileReader::read_stream(int fd, const std::string& name, const Emit& emit) {
  const Segmenter::Read read = [&](std::span<std::uint8_t> into) { return read_pipe(fd, into, name, stop_); };
  return read_run(read, std::numeric_limits<std::uint64_t>::max(), emit);
}

Result<std::uint64_t> FileReader::read_first_run(EntrySource& source, const std::string& path,
                                                 const Emit& emit, std::optional<std::uint64_t>& next_run) {
  class Run : public ByteSource {
   public:
    explicit Run(EntrySource& source) : source_(source) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override { return source_.read(into); }

   private:
    EntrySource& source_;
  };
  Run run(source);
  PeekSource in(run);
  KIN_TRY_ASSIGN(const ByteView head, in.peek(kHeadBytes));
  const ContainerFormat* const format = opens_ ? opener_.detect(head) : nullptr;
  if (format == nullptr) {
    KIN_TRY_ASSIGN(const std::uint64_t size,
                   read_run([&](std::span<std::uint8_t> into) { return in.read(into); },
                            std::numeric_limits<std::uint64_t>::max(), emit));
    KIN_TRY_ASSIGN(next_run, source.next_run());
    return size;
  }
  KIN_TRY_ASSIGN(const Fd copy, temporary_file());
  std::uint64_t size = 0;
  for (Bytes buffer(256 << 10);;) {
    KIN_TRY_ASSIGN(const std::size_t got, in.read(buffer));
    KIN_TRY(write_all(copy.get(), ByteView(buffer).first(got), path));
    size += got;
    if (got < buffer.size()) break;
  }
  if (::lseek(copy.get(), 0, SEEK_SET) < 0) return errno_error("cannot read", path);
  KIN_TRY_ASSIGN(next_run, source.next_run());
  if (!next_run && source.end() == size) {  // no holes
    KIN_TRY_ASSIGN(const std::optional<std::uint64_t> opened,
                   read_container(copy.get(), size, path, {}, emit));
    if (opened) return *opened;
  } else {
    counts_.add_closed(format->name, kHasHoles);
  }
  return read_run([&](std::span<std::uint8_t> into) { return read_up_to(copy.get(), into, path); }, size,
                  emit);
}

Result<std::uint64_t> FileReader::read_entry(EntrySource& source, const std::string& path, const Emit& emit) {
  std::uint64_t done = 0;
  read_before_ = 0;
  KIN_TRY_ASSIGN(std::optional<std::uint64_t> run, source.next_run());
  for (;;) {
    const std::uint64_t begin = run.value_or(source.end());
    if (begin > done) {
      if (!emit(hole_part(begin - done))) return interrupted();
      done = begin;
    }
    if (!run) return done;
    if (done == 0) {
      KIN_TRY_ASSIGN(done, read_first_run(source, path, emit, run));
      continue;
    }
    KIN_TRY_ASSIGN(const std::uint64_t size,
                   read_run([&](std::span<std::uint8_t> into) { return source.read(into); },
                            std::numeric_limits<std::uint64_t>::max(), emit));
    done += size;
    KIN_TRY_ASSIGN(run, source.next_run());
  }
}

Result<bool> FileReader::read_file(WalkEntry& entry, const Emit& emit,
                                   std::span<const FileSample::Drawn> only) {
  KIN_TRY_ASSIGN(const Fd fd, open_for_reading(entry));
  struct stat before {};
  if (::fstat(fd.get(), &before) != 0) return errno_error("cannot read", entry.path);
  if (!S_ISREG(before.st_mode)) return Error(ErrorCode::io, printable(entry.path) + " is no longer a file");
  Node node = node_from_stat(std::move(entry.node.name), before, names_);
  node.attributes = std::move(entry.node.attributes);
  entry.node = std::move(node);

  const Segmenter::Read read = [&](std::span<std::uint8_t> into) {
    return read_up_to(fd.get(), into, entry.path);
  };
  const auto size = static_cast<std::uint64_t>(before.st_size);
  // Files of /proc say that they are empty, and are not. Others may grow while we read.
  const std::uint64_t limit = size == 0 ? std::numeric_limits<std::uint64_t>::max() : size;
  const bool sampled = !only.empty() && (only.front().begin > 0 || only.front().end < size);
  KIN_TRY_ASSIGN(const bool sparse, has_holes(fd.get(), before, entry.path));
  const bool in_runs = sampled || sparse;
  const auto next_run = [&](std::uint64_t from) -> Result<std::pair<std::uint64_t, std::uint64_t>> {
    if (!sampled) return next_data(fd.get(), from, size, entry.path);
    while (!only.empty() && (only.front().begin < from || only.front().is_empty())) only = only.subspan(1);
    return only.empty() ? std::pair{size, size} : std::pair{only.front().begin, only.front().end};
  };
  std::uint64_t done = 0;
  read_before_ = 0;
  std::optional<std::uint64_t> opened;
  if (!in_runs && opens_) {
    const auto container = entry.before ? container_of(entry.before->content) : std::nullopt;
    KIN_TRY_ASSIGN(opened, read_container(fd.get(), limit, entry.path, container, emit));
  }
  if (opened) {
    done = *opened;
  } else if (!in_runs) {
    KIN_TRY_ASSIGN(done, read_run(read, limit, emit));
  }
  if (sparse && !sampled && opens_) KIN_TRY(count_sparse(fd.get(), entry.path));
  while (in_runs && done < size) {
    KIN_TRY_ASSIGN(const auto run, next_run(done));
    const std::uint64_t begin = std::min(run.first, size), end = std::min(run.second, size);
    if (begin > done) {
      FilePart hole = hole_part(begin - done);
      if (sampled) hole.size = 0;  // nobody waits for it
      if (!emit(std::move(hole))) return interrupted();
      done = begin;
    }
    if (end <= begin) break;
    if (::lseek(fd.get(), static_cast<off_t>(begin), SEEK_SET) < 0)
      return errno_error("cannot read", entry.path);
    KIN_TRY_ASSIGN(const std::uint64_t got, read_run(read, end - begin, emit));
    done += got;
    if (got < end - begin) break;
  }
  entry.node.size = done;
  struct stat after {};
  if (::fstat(fd.get(), &after) != 0) return errno_error("cannot read", entry.path);
  return done == static_cast<std::uint64_t>(after.st_size) && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

}  // namespace kin
