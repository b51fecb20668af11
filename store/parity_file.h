// A parity file: what it takes to put some packs right again that are damaged, or gone.
//
//     size of the header (u32)  header  checksums  parity  header  size of the header (u32)
//
// A checksum of 8 bytes for each sector, of the packs' and then of the parity's, tells which are damaged; so
// the file is of use also where it is damaged itself. The header is there twice.
#pragma once

#include "store/parity_header.h"

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

namespace kin::store {

// What parity needs of a repository. All must outlive who has it.
struct ParityPlace {
  Backend& backend;
  const Sealer& sealer;
  const Key& key;  // of the checksums
};

using SectorChecksum = std::array<std::uint8_t, kSectorChecksumBytes>;
SectorChecksum sector_checksum(const Key& key, ByteView sector);

class ParityFile {
 public:
  // By either copy of the header; corrupt if neither is right or most of the rest is missing, io if one
  // cannot be read, and the other is not right.
  static Result<ParityFile> open(const ParityPlace& place, const FileInfo& file);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }  // as it is
  const ParityHeader& header() const { return header_; }

  // Where the checksums and the parity begin; and by how much what lies behind a cut has moved.
  std::uint64_t checksums_offset() const;
  std::uint64_t parity_offset() const;
  std::int64_t shift() const;

  // As many bytes from there as the file has. What a disk cannot read is zeros.
  Result<Bytes> read(const ParityPlace& place, std::uint64_t offset, std::uint64_t size) const;

 private:
  std::string name_;
  std::uint64_t size_ = 0, header_bytes_ = 0;  // of a sealed copy
  ParityHeader header_;
};

// Where one place cannot be read, others may be: what cannot is zeros.
Bytes read_in_pieces(Backend& backend, const FileName& name, std::uint64_t offset, std::size_t size);

struct WrittenParity {
  std::optional<FileInfo> file;   // none if packs are unreadable; not yet durable
  std::set<ObjectId> unreadable;  // damaged or missing
};
// Reads the packs, one at a time, and checks them.
Result<WrittenParity> write_parity(const ParityPlace& place, const ParityHeader& header,
                                   const std::function<void()>& on_pack, const std::stop_token& stop);

}  // namespace kin::store
