#include "store/pack.h"

#include "lib/base/wire.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::store {
namespace {

constexpr std::string_view kPackMagic = "KINPACK1";
constexpr std::size_t kSizesBytes = 8;
// Blocks are written when there is this much of them: many are deltas of some hundred bytes.
constexpr std::size_t kTailBytes = 256 << 10;
// Payloads are never larger than the content they encode; headers have up to 38 bytes per object, and those
// of its sketch.
constexpr std::size_t kMostHeaderBytes = 256 << 20;
constexpr std::size_t kMostPayloadBytes = kMostBlockBytes + kTagBytes;

Nonce nonce_at(const Salt& salt, std::uint64_t position) {
  Nonce nonce;
  std::copy(salt.begin(), salt.end(), nonce.begin());
  for (std::size_t i = 0; i < 8; ++i) nonce[salt.size() + i] = static_cast<std::uint8_t>(position >> (8 * i));
  return nonce;
}

struct Sizes {
  std::uint32_t header, payload;
  std::uint64_t total() const { return kSizesBytes + std::uint64_t{header} + payload; }
};

Result<Sizes> read_sizes(ByteView bytes) {
  WireReader in(bytes);
  const Sizes sizes{in.u32(), in.u32()};
  if (in.failed() || sizes.header < kTagBytes || sizes.header > kMostHeaderBytes ||
      sizes.payload < kTagBytes || sizes.payload > kMostPayloadBytes)
    return Error(ErrorCode::corrupt, "the block's sizes are damaged");
  return sizes;
}

Result<BlockHeader> open_header(const Sealer& sealer, const Salt& salt, std::uint64_t offset, ByteView sizes,
                                ByteView sealed) {
  KIN_TRY_ASSIGN(const Bytes header, sealer.open(nonce_at(salt, offset), sizes, sealed));
  return decode_block_header(header);
}

}  // namespace

// Without encryption a nonce protects nothing, and the same blocks had better give the same pack.
PackBuilder::PackBuilder(const Sealer& sealer, std::unique_ptr<Draft> draft, bool differs)
    : sealer_(sealer),
      draft_(std::move(draft)),
      salt_(sealer.encrypts() || differs ? random_salt() : Salt{}) {
  append(tail_, as_bytes(kPackMagic));
  append(tail_, salt_);
  size_ = tail_.size();
}

Result<BlockRange> PackBuilder::add(const EncodedBlock& block) {
  if (tail_.size() >= kTailBytes) KIN_TRY(write_tail());
  const std::uint64_t offset = size_;
  const Bytes header = encode_block_header(block.header);
  WireWriter sizes;
  sizes.u32(static_cast<std::uint32_t>(header.size() + kTagBytes));
  sizes.u32(static_cast<std::uint32_t>(block.payload.size() + kTagBytes));
  Bytes record(sizes.bytes().begin(), sizes.bytes().end());
  const Bytes sealed_header = sealer_.seal(nonce_at(salt_, offset), sizes.bytes(), header);
  append(record, sealed_header);
  const ByteView tag = ByteView(sealed_header).last(kTagBytes);
  sealer_.seal_to(record, nonce_at(salt_, offset + 1), tag, block.payload);
  append(tail_, record);  // at once: half of a record must not stay, whatever throws
  size_ += record.size();
  return BlockRange{offset, static_cast<std::uint32_t>(record.size())};
}

Result<void> PackBuilder::write_tail() {
  KIN_TRY(draft_->append(tail_));
  hasher_.add(tail_);
  Bytes().swap(tail_);
  return {};
}

Result<Bytes> PackBuilder::record(const BlockRange& range) {
  const std::uint64_t written = size_ - tail_.size();
  if (range.offset < written) return draft_->get_range(range.offset, range.size);
  const ByteView bytes =
      ByteView(tail_).subspan(static_cast<std::size_t>(range.offset - written), range.size);
  return Bytes(bytes.begin(), bytes.end());
}

Result<ObjectId> PackBuilder::put() {
  KIN_TRY(write_tail());
  const ObjectId id{Hasher(hasher_).finish()};
  KIN_TRY(draft_->put({FileKind::pack, id.hex()}));
  return id;
}

Result<Salt> read_pack_prefix(ByteView bytes) {
  WireReader in(bytes);
  if (as_text(in.raw(kPackMagic.size())) != kPackMagic)
    return Error(ErrorCode::corrupt, "not a pack that kin wrote, or its start is damaged");
  const Salt salt = in.array<16>();
  if (in.failed()) return Error(ErrorCode::corrupt, "the pack is cut short");
  return salt;
}

Result<OpenedBlock> open_block(const Sealer& sealer, const Salt& salt, std::uint64_t offset, Bytes record) {
  const ByteView all = record;
  KIN_TRY_ASSIGN(const Sizes sizes, read_sizes(all));
  if (sizes.total() != all.size())
    return Error(ErrorCode::corrupt, "the block's sizes are not those in the index");
  const ByteView sealed_header = all.subspan(kSizesBytes, sizes.header);
  OpenedBlock out;
  KIN_TRY_ASSIGN(out.header, open_header(sealer, salt, offset, all.first(kSizesBytes), sealed_header));
  const Bytes tag(sealed_header.end() - kTagBytes, sealed_header.end());
  record.erase(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(kSizesBytes + sizes.header));
  KIN_TRY(sealer.open_in_place(nonce_at(salt, offset + 1), tag, record));
  out.payload = std::move(record);
  return out;
}

Result<std::size_t> header_end(ByteView start, std::uint32_t size) {
  KIN_TRY_ASSIGN(const Sizes sizes, read_sizes(start));
  if (sizes.total() != size) return Error(ErrorCode::corrupt, "the block's sizes are not those in the index");
  return kSizesBytes + std::size_t{sizes.header};
}

Result<BlockHeader> open_block_header(const Sealer& sealer, const Salt& salt, std::uint64_t offset,
                                      ByteView start) {
  KIN_TRY_ASSIGN(const Sizes sizes, read_sizes(start));
  if (start.size() < kSizesBytes + std::size_t{sizes.header})
    return Error(ErrorCode::corrupt, "the block's header is cut short");
  return open_header(sealer, salt, offset, start.first(kSizesBytes),
                     start.subspan(kSizesBytes, sizes.header));
}

Result<void> scan_pack(const Sealer& sealer, Backend& backend, const FileInfo& pack,
                       const VisitBlock& visit) {
  const FileName name{FileKind::pack, pack.name};
  const auto at = [&](std::uint64_t offset) { return fmt::format("{} at byte {}", name.text(), offset); };
  if (pack.size < PackBuilder::kPrefixBytes) return Error(ErrorCode::corrupt, name.text() + " is cut short");
  KIN_TRY_ASSIGN(const Bytes prefix, backend.get_range(name, 0, PackBuilder::kPrefixBytes));
  auto salt = read_pack_prefix(prefix);
  if (!salt) return std::move(salt).error().context(name.text());
  for (std::uint64_t offset = PackBuilder::kPrefixBytes; offset < pack.size;) {
    if (pack.size - offset < kSizesBytes) return Error(ErrorCode::corrupt, at(offset) + " is cut short");
    KIN_TRY_ASSIGN(const Bytes size_bytes, backend.get_range(name, offset, kSizesBytes));
    auto sizes = read_sizes(size_bytes);
    if (!sizes) return std::move(sizes).error().context(at(offset));
    if (sizes->total() > pack.size - offset) return Error(ErrorCode::corrupt, at(offset) + " is cut short");
    KIN_TRY_ASSIGN(const Bytes sealed, backend.get_range(name, offset + kSizesBytes, sizes->header));
    auto header = open_header(sealer, *salt, offset, size_bytes, sealed);
    if (!header) return std::move(header).error().context(at(offset));
    KIN_TRY(visit(*header, {offset, static_cast<std::uint32_t>(sizes->total())}));
    offset += sizes->total();
  }
  return {};
}

}  // namespace kin::store
