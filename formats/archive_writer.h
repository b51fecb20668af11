// ArchiveWriter: an archive of any kind, in one pass, of any size. What a Node says is kept as far as the
// kind's form holds it; in tar, in the records that GNU tar and bsdtar read. Not kept by any: inode and
// ctime, which no program restores; fractions of seconds before 1970; and names of extended attributes beyond
// ASCII, which libarchive writes as %XX. The same entries make the same archive. 7z needs room in $TMPDIR for
// what is in it. One thread at a time.
#pragma once

#include "formats/archive_kind.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/object/node.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kin::formats {

struct DataRange {
  std::uint64_t offset = 0, size = 0;
};

class ArchiveWriter {
 public:
  // Takes the archive's bytes, in order. Its first error ends the archive, and is what the calls below then
  // give.
  using Write = std::function<Result<void>(ByteView bytes)>;

  ArchiveWriter(const ArchiveKind& kind, Write write);
  ~ArchiveWriter();  // without finish() the archive stays cut off

  // `path` is relative. A file's content follows: node.size bytes by write(). unsupported: the form has
  // nothing of the node's type.
  Result<void> add(const Node& node, const std::string& path);
  // As add(), but only the bytes in these ranges, ascending, take room, if the form has holes; what is
  // written for the others must be zeros.
  Result<void> add_sparse(const Node& node, const std::string& path, const std::vector<DataRange>& data);
  // Another name for the file that was added as `earlier_path`, with a node of several links; no content
  // follows. Only where the form has links.
  Result<void> add_link(const Node& node, const std::string& path, const std::string& earlier_path);

  Result<void> write(ByteView content);
  Result<void> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin::formats
