// Packs from hostile bytes, behind seals that are right: whoever can write to a plain repository can make
// them. The first byte says how; of a pack that is sealed here, each record is the length of a header and of
// a payload, two bytes each, and both.
#include "lib/base/check.h"
#include "lib/base/wire.h"
#include "store/pack.h"

#include <algorithm>
#include <cstdint>

namespace {

using namespace kin;
using namespace kin::store;

Nonce nonce_at(const Salt& salt, std::uint64_t offset) {
  Nonce out{};
  std::copy(salt.begin(), salt.end(), out.begin());
  for (std::size_t i = 0; i < 8; ++i) out[salt.size() + i] = static_cast<std::uint8_t>(offset >> (8 * i));
  return out;
}

void append_record(const Sealer& sealer, ByteView header, ByteView payload, Bytes& pack) {
  const std::uint64_t offset = pack.size();
  WireWriter sizes;
  sizes.u32(static_cast<std::uint32_t>(header.size() + kTagBytes));
  sizes.u32(static_cast<std::uint32_t>(payload.size() + kTagBytes));
  const Bytes sealed = sealer.seal(nonce_at({}, offset), sizes.bytes(), header);
  append(pack, sizes.bytes());
  append(pack, sealed);
  sealer.seal_to(pack, nonce_at({}, offset + 1), ByteView(sealed).last(kTagBytes), payload);
}

Bytes make_pack(const Sealer& sealer, ByteView input) {
  const std::uint8_t how = input.empty() ? 0 : input[0];
  ByteView rest = input.subspan(std::min<std::size_t>(1, input.size()));
  if (how % 4 == 3) return Bytes(rest.begin(), rest.end());
  Bytes pack;
  append(pack, as_bytes("KINPACK1"));
  append(pack, Salt{});
  while (rest.size() >= 4) {
    const std::size_t header = std::min<std::size_t>(rest[0] | rest[1] << 8, rest.size() - 4);
    const std::size_t payload = std::min<std::size_t>(rest[2] | rest[3] << 8, rest.size() - 4 - header);
    append_record(sealer, rest.subspan(4, header), rest.subspan(4 + header, payload), pack);
    rest = rest.subspan(4 + header + payload);
  }
  if (how % 4 == 1) append(pack, rest);  // the beginning of another
  if (how % 4 == 2) pack.resize(pack.size() - std::min<std::size_t>(how / 4, pack.size()));
  return pack;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sealer sealer(Encryption::none, Key{});
  const Bytes pack = make_pack(sealer, {data, size});
  const auto backend = make_memory_backend();
  const FileName name{FileKind::pack, std::string(64, 'a')};
  KIN_CHECK(backend->put(name, pack).has_value());
  static const Bytes base(4096, 'b');
  const auto salt = read_pack_prefix(pack);
  std::uint64_t end = PackBuilder::kPrefixBytes;
  const auto scanned = scan_pack(
      sealer, *backend, {name.name, pack.size()},
      [&](const BlockHeader& header, const BlockRange& range) -> Result<void> {
        // One behind the other, with nothing between them, and none beyond the end.
        KIN_CHECK(salt.has_value() && range.offset == end && range.size <= pack.size() - end);
        end += range.size;
        const ByteView record = ByteView(pack).subspan(static_cast<std::size_t>(range.offset), range.size);
        const auto start = header_end(record, range.size);
        KIN_CHECK(start.has_value() && *start <= record.size());
        const auto alone = open_block_header(sealer, *salt, range.offset, record.first(*start));
        KIN_CHECK(alone && *alone == header);
        KIN_CHECK(equal(encode_block_header(*alone), encode_block_header(header)));
        const auto opened = open_block(sealer, *salt, range.offset, Bytes(record.begin(), record.end()));
        if (!opened || header.content_size > (1 << 20)) return {};
        KIN_CHECK(opened->header == header);
        const auto content =
            BlockDecoder().decode(opened->header, header.base ? ByteView(base) : ByteView(), opened->payload);
        if (content) KIN_CHECK(content->size() == header.content_size);
        return {};
      });
  if (scanned) KIN_CHECK(end == pack.size());
  return 0;
}
