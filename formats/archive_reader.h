// ArchiveReader: the entries of an archive, for kin import: whatever libarchive reads without starting other
// programs and without looking at other files. Those are tar, cpio, zip, 7z, ISO 9660, cab, rar, lha, ar
// (deb), xar and warc; the first two also compressed (gzip, bzip2, xz, lzma, lzip, lz4, zstd, compress,
// uuencode) or in an rpm. One thread at a time.
//
// Strict where libarchive is lenient: a zip must have its directory, since without that there are neither
// modes nor a sign that it is whole; gzip's checksums are compared; and a file has the size that the archive
// says. And exact: names, and those of links and owners, are the bytes that the archive has, and are not
// brought to a normal form; but for those of rar, cab, lha, xar and Joliet, which libarchive gives in no
// other.
//
// Memory: what libarchive needs for the format, which is some MiB, the names of a 7z, and the dictionary of
// 7z, rar or xz, as large as the archive says and up to 4 GiB.
#pragma once

#include "lib/engine/entry_source.h"

#include <functional>
#include <memory>
#include <stop_token>

namespace kin::formats {

class ArchiveReader : public EntrySource {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // `fd` must outlive it; a pipe will do for tar and cpio. `name` is for messages. `warn` is told what is not
  // kept of an entry, though the archive has it.
  ArchiveReader(int fd, std::string name, Warn warn, std::stop_token stop);
  ~ArchiveReader() override;

  // unsupported: no archive, or one that is encrypted; an entry of a name with "..", which would lie outside.
  // Names that begin with '/' are taken without it.
  Result<std::optional<SourceEntry>> next() override;
  Result<std::optional<std::uint64_t>> next_run() override;
  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  std::uint64_t end() const override;

  std::string format() const;            // such as "POSIX pax interchange format"
  std::uint64_t absolute_names() const;  // how many there were

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin::formats
