#include "store/pack.h"

#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "tests/support/damage.h"
#include "tests/support/encryption.h"
#include "tests/support/expect.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin::store {
namespace {

using testing::code_of;
using testing::error_of;
using testing::FaultyDisk;
using testing::kModes;
using testing::random_bytes;
using testing::require_ok;
using testing::text_like;
using testing::value_of;

Sealer sealer_of(Encryption mode) { return Sealer(mode, Key{1, 2, 3}); }

EncodedBlock block_of(const Bytes& content, const std::optional<ObjectId>& base = std::nullopt) {
  EncodedBlock out;
  out.header.codec = static_cast<std::uint8_t>(CodecId::plain);
  out.header.base = base;
  out.header.content_size = content.size();
  out.header.objects = {{ObjectId{hash(content)}, ObjectKind::data, content.size(), {1, 2}}};
  out.payload = content;
  return out;
}

std::vector<EncodedBlock> sample_blocks() {
  return {block_of(text_like(1, 40)), block_of({}),
          block_of(text_like(2, 70), ObjectId{hash(as_bytes("base"))}), block_of(text_like(3, 10))};
}

struct SamplePack {
  Bytes bytes;
  std::vector<EncodedBlock> blocks;
  std::vector<BlockRange> ranges;
};

SamplePack make_pack(const Sealer& sealer, std::vector<EncodedBlock> blocks = sample_blocks()) {
  SamplePack out;
  out.blocks = std::move(blocks);
  const auto backend = make_memory_backend();
  PackBuilder builder(sealer, value_of(backend->begin()));
  for (const EncodedBlock& block : out.blocks) out.ranges.push_back(value_of(builder.add(block)));
  out.bytes = value_of(get_named(*backend, {FileKind::pack, value_of(builder.put()).hex()}));
  return out;
}

struct Scanned {
  std::vector<BlockHeader> headers;
  std::vector<BlockRange> ranges;
  Result<void> result;
};

Scanned scan(const Sealer& sealer, const Bytes& pack) {
  FaultyDisk disk;
  const FileName name{FileKind::pack, hex(hash(as_bytes("some pack")))};
  disk.write(name, pack);
  const auto backend = disk.open();
  Scanned out;
  out.result = scan_pack(sealer, *backend, {name.name, pack.size()},
                         [&](const BlockHeader& header, BlockRange range) -> Result<void> {
                           out.headers.push_back(header);
                           out.ranges.push_back(range);
                           return {};
                         });
  return out;
}

// True if what was visited is how the sample starts.
bool is_start_of(const Scanned& scanned, const SamplePack& pack) {
  if (scanned.headers.size() > pack.blocks.size()) return false;
  for (std::size_t i = 0; i < scanned.headers.size(); ++i)
    if (scanned.headers[i] != pack.blocks[i].header || scanned.ranges[i].offset != pack.ranges[i].offset ||
        scanned.ranges[i].size != pack.ranges[i].size)
      return false;
  return true;
}

// As the repository reads one block: by its place, from a pack that may be damaged.
Result<OpenedBlock> open_at(const Sealer& sealer, const Bytes& pack, const BlockRange& range) {
  if (pack.size() < range.offset + range.size) return Error(ErrorCode::corrupt, "cut short");
  KIN_TRY_ASSIGN(const Salt salt, read_pack_prefix(ByteView(pack).first(PackBuilder::kPrefixBytes)));
  const ByteView view = ByteView(pack).subspan(range.offset, range.size);
  const Bytes record(view.begin(), view.end());  // its own memory, so that a read beyond it is seen
  return open_block(sealer, salt, range.offset, record);
}

bool is_block(const OpenedBlock& opened, const EncodedBlock& block) {
  return opened.header == block.header && opened.payload == block.payload;
}

}  // namespace

TEST_CASE("a pack gives back its blocks, by scanning and by place", "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack pack = make_pack(sealer);
    const Scanned scanned = scan(sealer, pack.bytes);
    require_ok(scanned.result);
    CHECK(scanned.headers.size() == pack.blocks.size());
    CHECK(is_start_of(scanned, pack));
    for (std::size_t i = 0; i < pack.blocks.size(); ++i)
      CHECK(is_block(value_of(open_at(sealer, pack.bytes, pack.ranges[i])), pack.blocks[i]));
  }
}

TEST_CASE("a pack starts with its magic, and blocks follow without a gap", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  const SamplePack pack = make_pack(sealer);
  CHECK(as_text(ByteView(pack.bytes).first(8)) == "KINPACK1");
  std::uint64_t next = PackBuilder::kPrefixBytes;
  for (std::size_t i = 0; i < pack.blocks.size(); ++i) {
    CHECK(pack.ranges[i].offset == next);
    CHECK(pack.ranges[i].size ==
          8 + encode_block_header(pack.blocks[i].header).size() + 16 + pack.blocks[i].payload.size() + 16);
    next += pack.ranges[i].size;
  }
  CHECK(next == pack.bytes.size());
}

TEST_CASE("a builder knows whether it is empty and how large it is", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  const auto backend = make_memory_backend();
  PackBuilder builder(sealer, value_of(backend->begin()));
  CHECK(builder.empty());
  CHECK(builder.size() == PackBuilder::kPrefixBytes);
  const BlockRange range = value_of(builder.add(sample_blocks()[0]));
  CHECK_FALSE(builder.empty());
  CHECK(builder.size() == range.offset + range.size);
}

TEST_CASE("a builder gives its blocks back while it grows, from the backend and from memory", "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const auto backend = make_memory_backend();
    PackBuilder builder(sealer, value_of(backend->begin()));
    std::vector<EncodedBlock> blocks;
    std::vector<BlockRange> ranges;
    // Some small ones between large ones, so that what is written ends at every kind of place.
    for (std::uint64_t i = 0; i < 40; ++i) {
      blocks.push_back(block_of(random_bytes(i, i % 4 == 0 ? 150'000 : 10 * i)));
      ranges.push_back(value_of(builder.add(blocks.back())));
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        const Bytes record = value_of(builder.record(ranges[at]));
        CHECK(is_block(value_of(open_block(sealer, builder.salt(), ranges[at].offset, record)), blocks[at]));
      }
    }
    CHECK(value_of(backend->list(FileKind::pack)).empty());
    const ObjectId id = value_of(builder.put());
    const Bytes pack = value_of(get_named(*backend, {FileKind::pack, id.hex()}));
    CHECK(pack.size() == builder.size());
    CHECK(scan(sealer, pack).ranges.size() == blocks.size());
  }
}

TEST_CASE("a builder whose backend fails can go on from there", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::xchacha20_poly1305);
  const std::vector<EncodedBlock> blocks{block_of(random_bytes(1, 300'000)),
                                         block_of(random_bytes(2, 300'000)), block_of(random_bytes(3, 10))};
  FaultyDisk disk;
  const auto backend = disk.open();
  PackBuilder builder(sealer, value_of(backend->begin()));
  std::vector<BlockRange> ranges{value_of(builder.add(blocks[0]))};
  disk.set_quota(200'000);
  CHECK(code_of(builder.add(blocks[1])) == ErrorCode::no_space);
  disk.lift_quota();
  ranges.push_back(value_of(builder.add(blocks[1])));
  disk.fail(testing::Operation::append);
  CHECK(code_of(builder.add(blocks[2])) == ErrorCode::io);
  ranges.push_back(value_of(builder.add(blocks[2])));
  disk.fail(testing::Operation::append);
  CHECK(code_of(builder.put()) == ErrorCode::io);
  disk.fail(testing::Operation::put);
  CHECK(code_of(builder.put()) == ErrorCode::io);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Bytes record = value_of(builder.record(ranges[i]));
    CHECK(is_block(value_of(open_block(sealer, builder.salt(), ranges[i].offset, record)), blocks[i]));
  }
  const Bytes pack = value_of(get_named(*backend, {FileKind::pack, value_of(builder.put()).hex()}));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    CHECK(is_block(value_of(open_at(sealer, pack, ranges[i])), blocks[i]));
}

TEST_CASE("a pack without blocks scans well", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  const Scanned scanned = scan(sealer, make_pack(sealer, {}).bytes);
  require_ok(scanned.result);
  CHECK(scanned.headers.empty());
}

TEST_CASE("plain packs of the same blocks are the same, encrypted ones are not", "[pack]") {
  const Sealer plain = sealer_of(Encryption::none), encrypted = sealer_of(Encryption::xchacha20_poly1305);
  CHECK(make_pack(plain).bytes == make_pack(plain).bytes);
  CHECK(make_pack(encrypted).bytes != make_pack(encrypted).bytes);
}

TEST_CASE("an encrypted pack shows neither content nor ids", "[pack]") {
  const SamplePack pack = make_pack(sealer_of(Encryption::xchacha20_poly1305));
  const std::string shown = hex(pack.bytes);
  for (const EncodedBlock& block : pack.blocks) {
    CHECK(shown.find(block.header.objects[0].id.hex()) == std::string::npos);
    if (block.payload.size() >= 10)
      CHECK(shown.find(hex(ByteView(block.payload).first(10))) == std::string::npos);
  }
}

TEST_CASE("a scan of a pack with any byte changed stops there, and all it visited is sound", "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack pack = make_pack(sealer);
    std::size_t at = 0;
    testing::for_each_flip(pack.bytes, [&](const Bytes& damaged, const std::string& what) {
      const std::size_t position = at++ / 3;
      const Scanned scanned = scan(sealer, damaged);
      if (!is_start_of(scanned, pack)) FAIL(what << " gives other blocks");
      // Only payloads are not looked at by a scan.
      bool in_payload = false;
      for (std::size_t i = 0; i < pack.blocks.size(); ++i) {
        const std::size_t payload_at =
            pack.ranges[i].offset + pack.ranges[i].size - pack.blocks[i].payload.size() - kTagBytes;
        in_payload =
            in_payload || (position >= payload_at && position < pack.ranges[i].offset + pack.ranges[i].size);
      }
      if (scanned.result.has_value() != in_payload)
        FAIL(what << (in_payload ? " is no error" : " goes unnoticed"));
      if (!scanned.result && scanned.result.error().code() != ErrorCode::corrupt)
        FAIL(what << ": " << scanned.result.error().message());
    });
  }
}

TEST_CASE("a block of a pack with any byte changed opens to the same or not at all", "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack pack = make_pack(sealer);
    std::size_t at = 0;
    testing::for_each_flip(pack.bytes, [&](const Bytes& damaged, const std::string& what) {
      const std::size_t position = at++ / 3;
      for (std::size_t i = 0; i < pack.blocks.size(); ++i) {
        const auto opened = open_at(sealer, damaged, pack.ranges[i]);
        const bool inside =
            position >= pack.ranges[i].offset && position < pack.ranges[i].offset + pack.ranges[i].size;
        const bool hit = inside || position < PackBuilder::kPrefixBytes;
        if (opened && !is_block(*opened, pack.blocks[i])) FAIL(what << " gives another block");
        if (opened.has_value() == hit)
          FAIL(what << (hit ? " goes unnoticed" : " breaks a block that it is not in"));
        if (!opened && opened.error().code() != ErrorCode::corrupt)
          FAIL(what << ": " << opened.error().message());
      }
    });
  }
}

TEST_CASE(
    "a pack cut at any length gives the blocks before the cut, and an error unless it falls between two",
    "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack pack = make_pack(sealer);
    testing::for_each_cut(pack.bytes, [&](const Bytes& cut, const std::string& what) {
      const Scanned scanned = scan(sealer, cut);
      std::size_t whole = 0;
      bool between = cut.size() == PackBuilder::kPrefixBytes;
      for (const BlockRange& range : pack.ranges) {
        whole += range.offset + range.size <= cut.size() ? 1 : 0;
        between = between || range.offset + range.size == cut.size();
      }
      INFO(what);
      CHECK(is_start_of(scanned, pack));
      CHECK(scanned.headers.size() == whole);
      CHECK(scanned.result.has_value() == between);
    });
  }
}

TEST_CASE("a scan does not believe a size that the pack does not have", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  const SamplePack pack = make_pack(sealer);
  FaultyDisk disk;
  const FileName name{FileKind::pack, hex(hash(as_bytes("x")))};
  disk.write(name, pack.bytes);
  const auto backend = disk.open();
  const auto nothing = [](const BlockHeader&, BlockRange) -> Result<void> { return {}; };
  CHECK(code_of(scan_pack(sealer, *backend, {name.name, pack.bytes.size() + 1000}, nothing)) ==
        ErrorCode::corrupt);
  CHECK(code_of(scan_pack(sealer, *backend, {name.name, 3}, nothing)) == ErrorCode::corrupt);
  CHECK(code_of(scan_pack(sealer, *backend, {hex(hash(as_bytes("y"))), 1000}, nothing)) ==
        ErrorCode::not_found);
}

TEST_CASE("an error of the visitor ends the scan", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  FaultyDisk disk;
  const FileName name{FileKind::pack, hex(hash(as_bytes("x")))};
  const SamplePack pack = make_pack(sealer);
  disk.write(name, pack.bytes);
  int visits = 0;
  const auto result = scan_pack(sealer, *disk.open(), {name.name, pack.bytes.size()},
                                [&](const BlockHeader&, BlockRange) -> Result<void> {
                                  if (++visits == 2) return Error(ErrorCode::cancelled, "enough");
                                  return {};
                                });
  CHECK(code_of(result) == ErrorCode::cancelled);
  CHECK(visits == 2);
}

TEST_CASE("a block does not open at another place, or in another encrypted pack", "[pack]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack pack = make_pack(sealer);
    const Salt salt = value_of(read_pack_prefix(pack.bytes));
    const BlockRange& range = pack.ranges[0];
    const ByteView view = ByteView(pack.bytes).subspan(range.offset, range.size);
    const Bytes record(view.begin(), view.end());
    REQUIRE(open_block(sealer, salt, range.offset, record).has_value());
    CHECK(code_of(open_block(sealer, salt, range.offset + 1, record)) == ErrorCode::corrupt);
    CHECK(code_of(open_block(sealer, salt, pack.ranges[2].offset, record)) == ErrorCode::corrupt);
    Salt other = salt;
    other[0] ^= 1;
    CHECK(code_of(open_block(sealer, other, range.offset, record)) == ErrorCode::corrupt);
  }
}

TEST_CASE("a header does not open with the payload of another block", "[pack]") {
  // Two packs whose blocks differ only in the payload, of the same size: header of one, payload of the other.
  for (const Encryption mode : kModes) {
    const Sealer sealer = sealer_of(mode);
    const SamplePack first = make_pack(sealer, {block_of(random_bytes(1, 50))});
    const SamplePack second = make_pack(sealer, {block_of(random_bytes(2, 50))});
    const std::uint64_t offset = first.ranges[0].offset;
    Bytes record(first.bytes.begin() + static_cast<std::ptrdiff_t>(offset), first.bytes.end());
    std::copy(second.bytes.end() - 50 - kTagBytes, second.bytes.end(), record.end() - 50 - kTagBytes);
    CHECK(code_of(open_block(sealer, value_of(read_pack_prefix(first.bytes)), offset, record)) ==
          ErrorCode::corrupt);
  }
}

TEST_CASE("sizes that no block has are corrupt, and nothing is allocated for them", "[pack]") {
  const Sealer sealer = sealer_of(Encryption::none);
  for (const auto& [header, payload] : {std::pair{0U, 100U},
                                        {15U, 100U},
                                        {100U, 0U},
                                        {100U, 15U},
                                        {~0U, 100U},
                                        {100U, ~0U},
                                        {~0U, ~0U},
                                        {300U << 20, 16U}}) {
    WireWriter record;
    record.u32(header);
    record.u32(payload);
    record.raw(Bytes(200));
    INFO(header << " " << payload);
    CHECK(code_of(open_block(sealer, Salt{}, 24, record.bytes())) == ErrorCode::corrupt);
    Bytes pack = make_pack(sealer, {}).bytes;
    append(pack, record.bytes());
    CHECK(code_of(scan(sealer, pack).result) == ErrorCode::corrupt);
  }
  CHECK(code_of(open_block(sealer, Salt{}, 24, {})) == ErrorCode::corrupt);
  CHECK(code_of(open_block(sealer, Salt{}, 24, Bytes(7))) == ErrorCode::corrupt);
}

TEST_CASE("a file that is no pack is corrupt, and named", "[pack]") {
  const Scanned scanned = scan(sealer_of(Encryption::none), random_bytes(9, 500));
  const Error error = error_of(scanned.result);
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains("pack " + hex(hash(as_bytes("some pack"))).substr(0, 8)));
}

}  // namespace kin::store
