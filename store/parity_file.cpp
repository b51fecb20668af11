#include "store/parity_file.h"

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "store/reed_solomon.h"

#include <algorithm>

namespace kin::store {
namespace {

constexpr std::string_view kParityMagic = "KINPARI1";
constexpr std::size_t kHeaderSizeBytes = 4;
constexpr std::uint32_t kMostParityHeaderBytes = 64 << 20;
// Of what cannot be read in one go: a disk that cannot read one place may read the others.
constexpr std::size_t kPieceBytes = 4 << 10;

Bytes size_field(std::size_t bytes) {
  WireWriter out;
  out.u32(static_cast<std::uint32_t>(bytes));
  return out.take();
}

// Of the two copies; `at_end`: the one before the size field.
Result<Bytes> read_header(const ParityPlace& place, const FileName& name, std::uint64_t file_size,
                          bool at_end, std::uint64_t& header_bytes) {
  const Error too_short(ErrorCode::corrupt, name.text() + ": its header is damaged");
  if (file_size < 2 * kHeaderSizeBytes) return too_short;
  KIN_TRY_ASSIGN(const Bytes size,
                 place.backend.get_range(name, at_end ? file_size - kHeaderSizeBytes : 0, kHeaderSizeBytes));
  header_bytes = WireReader(size).u32();
  if (header_bytes > kMostParityHeaderBytes || header_bytes > file_size - 2 * kHeaderSizeBytes)
    return too_short;
  KIN_TRY_ASSIGN(
      const Bytes sealed,
      place.backend.get_range(name, at_end ? file_size - kHeaderSizeBytes - header_bytes : kHeaderSizeBytes,
                              static_cast<std::size_t>(header_bytes)));
  auto plain = place.sealer.open_file(kParityMagic, sealed);
  if (!plain) return std::move(plain).error().context(name.text());
  return plain;
}

// Sectors in memory, one behind the other.
class Sectors {
 public:
  Sectors(std::uint64_t count, std::uint32_t sector_bytes)
      : sector_bytes_(sector_bytes), bytes_(static_cast<std::size_t>(count * sector_bytes)) {}
  std::uint8_t* at(std::uint64_t sector) { return bytes_.data() + sector * sector_bytes_; }
  ByteView bytes() const { return bytes_; }

 private:
  std::uint32_t sector_bytes_;
  Bytes bytes_;
};

}  // namespace

SectorChecksum sector_checksum(const Key& key, ByteView sector) {
  const Digest digest = keyed_hash(key, sector);
  SectorChecksum out;
  std::copy_n(digest.begin(), out.size(), out.begin());
  return out;
}

Result<ParityFile> ParityFile::open(const ParityPlace& place, const FileInfo& file) {
  const FileName name{FileKind::parity, file.name};
  ParityFile out;
  out.name_ = file.name;
  out.size_ = file.size;
  auto plain = read_header(place, name, file.size, false, out.header_bytes_);
  if (!plain && (is_damage(plain.error()) || plain.error().code() == ErrorCode::io)) {
    auto other = read_header(place, name, file.size, true, out.header_bytes_);
    if (other || plain.error().code() != ErrorCode::io) plain = std::move(other);
  }
  if (!plain) return std::move(plain).error();
  auto header = decode_parity_header(*plain);
  if (!header) return std::move(header).error().context(name.text());
  out.header_ = *std::move(header);
  // Of so little nothing can be healed, and nobody should take memory for what it says it had.
  if (out.header_.stored_bytes() / 4 > file.size)
    return Error(ErrorCode::corrupt, name.text() + " is cut short");
  return out;
}

std::uint64_t ParityFile::checksums_offset() const { return kHeaderSizeBytes + header_bytes_; }

std::uint64_t ParityFile::parity_offset() const {
  return checksums_offset() + kSectorChecksumBytes * (header_.data_sectors() + header_.parity_sectors());
}

std::int64_t ParityFile::shift() const {
  const std::uint64_t whole = checksums_offset() + header_.stored_bytes() + header_bytes_ + kHeaderSizeBytes;
  return static_cast<std::int64_t>(size_) - static_cast<std::int64_t>(whole);
}

Result<Bytes> ParityFile::read(const ParityPlace& place, std::uint64_t offset, std::uint64_t size) const {
  if (offset >= size_) return Bytes();
  const FileName name{FileKind::parity, name_};
  const auto bytes = static_cast<std::size_t>(std::min(size, size_ - offset));
  auto out = place.backend.get_range(name, offset, bytes);
  if (out || out.error().code() != ErrorCode::io) return out;
  return read_in_pieces(place.backend, name, offset, bytes);
}

Bytes read_in_pieces(Backend& backend, const FileName& name, std::uint64_t offset, std::size_t size) {
  Bytes out(size);
  for (std::size_t at = 0; at < size; at += kPieceBytes) {
    const auto piece = backend.get_range(name, offset + at, std::min(kPieceBytes, size - at));
    if (piece) std::copy(piece->begin(), piece->end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return out;
}

Result<WrittenParity> write_parity(const ParityPlace& place, const ParityHeader& header,
                                   const std::function<void()>& on_pack, const std::stop_token& stop) {
  WrittenParity out;
  const std::uint32_t sector_bytes = header.sector_bytes;
  ReedSolomon codes[kParityLayouts] = {{header.positions, 0, header.rows[0]},
                                       {header.positions, header.rows[0], header.rows[1]}};
  Sectors parity(header.parity_sectors(), sector_bytes);
  Bytes checksums, filled(sector_bytes);
  std::uint64_t sector = 0;
  const auto add = [&](ByteView bytes) {
    for (std::size_t layout = 0; layout < kParityLayouts; ++layout) {
      std::array<std::uint8_t*, ReedSolomon::kMost> parities;
      for (unsigned row = 0; row < header.rows[layout]; ++row)
        parities[row] = parity.at(header.parity_at(layout, header.stripe_of(layout, sector), row));
      codes[layout].add(header.position_of(sector), bytes, std::span(parities).first(header.rows[layout]));
    }
    append(checksums, sector_checksum(place.key, bytes));
    ++sector;
  };
  for (const ParityHeader::Pack& pack : header.packs) {
    if (stop.stop_requested()) return interrupted();
    on_pack();
    const auto file = get_named(place.backend, {FileKind::pack, pack.id.hex()});
    if (!file && !is_damage(file.error()) && file.error().code() != ErrorCode::io) return file.error();
    if (!file || file->size() != pack.size) {
      out.unreadable.insert(pack.id);
      continue;
    }
    if (!out.unreadable.empty()) continue;  // the rest is only read to be checked
    for (std::size_t at = 0; at < file->size(); at += sector_bytes) {
      const ByteView here =
          ByteView(*file).subspan(at, std::min<std::size_t>(sector_bytes, file->size() - at));
      if (here.size() == sector_bytes) {
        add(here);
        continue;
      }
      std::fill(std::copy(here.begin(), here.end(), filled.begin()), filled.end(), 0);
      add(filled);
    }
  }
  if (!out.unreadable.empty()) return out;
  for (std::uint64_t i = 0; i < header.parity_sectors(); ++i)
    append(checksums, sector_checksum(place.key, {parity.at(i), sector_bytes}));

  const Bytes sealed = place.sealer.seal_file(kParityMagic, encode_parity_header(header));
  const Bytes size = size_field(sealed.size());
  KIN_TRY_ASSIGN(const std::unique_ptr<Draft> draft, place.backend.begin());
  Hasher hasher;
  std::uint64_t bytes = 0;
  for (const ByteView part : {ByteView(size), ByteView(sealed), ByteView(checksums), parity.bytes(),
                              ByteView(sealed), ByteView(size)}) {
    KIN_TRY(draft->append(part));
    hasher.add(part);
    bytes += part.size();
  }
  out.file = FileInfo{hex(hasher.finish()), bytes};
  KIN_TRY(draft->put({FileKind::parity, out.file->name}));
  return out;
}

}  // namespace kin::store
