// Healing from a hostile parity file, behind a seal that is right, and from right ones that are damaged: what
// is given back hashes to its name. The input changes a file that was made here of three packs: how many
// percent, which packs are damaged and how, how the file is cut, and then bytes of its header and of the
// rest.
#include "lib/base/check.h"
#include "lib/base/wire.h"
#include "store/parity_heal.h"

#include <algorithm>
#include <cstdint>

namespace {

using namespace kin;
using namespace kin::store;

constexpr std::string_view kMagic = "KINPARI1";

std::vector<Bytes> make_packs() {
  std::vector<Bytes> out;
  std::uint32_t random = 7;
  for (const std::size_t size : {std::size_t{700}, std::size_t{2600}, std::size_t{64}}) {
    Bytes pack(size);
    for (std::uint8_t& byte : pack)
      byte = static_cast<std::uint8_t>((random = random * 1664525 + 1013904223) >> 24);
    out.push_back(std::move(pack));
  }
  return out;
}

// Changes bytes at places, two bytes each, until a place is none.
void change(Bytes& bytes, WireReader& in, std::size_t most) {
  for (; most > 0 && in.left() >= 3; --most) {
    const std::size_t at = in.u8() | in.u8() << 8;
    const std::uint8_t by = in.u8();
    if (at >= bytes.size()) return;
    bytes[at] ^= by;
  }
}

void damage(Bytes& pack, WireReader& in) {
  const std::uint8_t how = in.u8();
  if (how % 4 == 1) change(pack, in, how / 4);
  if (how % 4 == 2) pack.resize(pack.size() * (how / 4) / 64);
  if (how % 4 == 3) pack.erase(pack.begin(), pack.begin() + how / 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sealer sealer(Encryption::none, Key{});
  static const std::vector<Bytes> packs = make_packs();
  WireReader in({data, size});
  const auto backend = make_memory_backend();
  const ParityPlace place{*backend, sealer, Key{}};
  std::vector<ParityHeader::Pack> known;
  for (const Bytes& pack : packs) {
    known.push_back({ObjectId{hash(pack)}, pack.size()});
    KIN_CHECK(backend->put({FileKind::pack, known.back().id.hex()}, pack).has_value());
  }
  const ParityHeader right = plan_parity(known, 1 + in.u8() % kMostParityPercent);
  const auto written = write_parity(place, right, [] {}, {});
  KIN_CHECK(written && written->file);
  const FileName name{FileKind::parity, written->file->name};
  const auto whole = backend->get(name);
  KIN_CHECK(whole.has_value());

  for (std::size_t i = 0; i < packs.size(); ++i) {
    Bytes pack = packs[i];
    damage(pack, in);
    const FileName pack_name{FileKind::pack, known[i].id.hex()};
    KIN_CHECK((pack.empty() ? backend->remove(pack_name) : backend->put(pack_name, pack)).has_value());
  }

  Bytes file = *whole;
  const std::uint8_t how = in.u8();
  if (how % 2 == 1) {  // another header
    Bytes header = encode_parity_header(right);
    const Bytes sealed_before = sealer.seal_file(kMagic, header);
    change(header, in, how / 2);
    const Bytes sealed = sealer.seal_file(kMagic, header);
    KIN_CHECK(sealed.size() == sealed_before.size());
    std::copy(sealed.begin(), sealed.end(), file.begin() + 4);
    std::copy(sealed.begin(), sealed.end(), file.end() - 4 - static_cast<std::ptrdiff_t>(sealed.size()));
  }
  const std::size_t cut = in.u8() * std::size_t{16};
  file.erase(file.begin() + static_cast<std::ptrdiff_t>(std::min(cut, file.size() / 2)),
             file.begin() + static_cast<std::ptrdiff_t>(std::min(2 * cut, file.size() / 2)));
  change(file, in, SIZE_MAX);
  KIN_CHECK(backend->put(name, file).has_value());

  const auto opened = ParityFile::open(place, {name.name, file.size()});
  if (!opened) return 0;
  std::set<ObjectId> healed;
  const auto lost = heal_from_parity(
      place, *opened, [](const ObjectId&) { return true; },
      [&](const ObjectId& pack, const Bytes& bytes) -> Result<void> {
        KIN_CHECK(hash(bytes) == pack.bytes && healed.insert(pack).second);
        return {};
      },
      {});
  if (!lost) return 0;
  for (const ObjectId& pack : *lost) KIN_CHECK(!healed.contains(pack));
  return 0;
}
