// EntrySource: files that come from elsewhere than a disk, one after the other and in any order: the entries
// of an archive. Whatever their order, they make a tree (ImportedTree). One thread at a time.
#pragma once

#include "lib/base/result.h"
#include "lib/object/node.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kin {

struct SourceEntry {
  Node node;                           // without name, size, content, inode and links
  std::string path;                    // safe names with '/' between them; empty: the root itself
  std::optional<std::string> link_to;  // such a path, of an earlier entry: this is another name for it
};

class EntrySource {
 public:
  virtual ~EntrySource() = default;

  // Nothing after the last. corrupt, unsupported: what is read is damaged, or cannot be read: then nothing of
  // it should be kept. The same holds for the calls below.
  virtual Result<std::optional<SourceEntry>> next() = 0;

  // The content of that entry, if it is a file: runs of data, with holes before, between and behind them. A
  // link may bring content too, which is then that of all its names.
  //
  // Where the next run begins. Nothing: there is none, and end() says where the file ends.
  virtual Result<std::optional<std::uint64_t>> next_run() = 0;
  // Bytes of the run; fewer than asked for at its end, and only there.
  virtual Result<std::size_t> read(std::span<std::uint8_t> into) = 0;
  virtual std::uint64_t end() const = 0;
};

}  // namespace kin
