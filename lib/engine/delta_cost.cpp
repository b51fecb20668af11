#include "lib/engine/delta_cost.h"

#include "lib/base/file.h"
#include "lib/delta/effort.h"
#include "lib/delta/file_vcdiff_base.h"
#include "lib/similarity/content_reader.h"

#include <algorithm>

namespace kin {
namespace {

Result<std::uint64_t> vcdiff_bytes(const std::string& base_path, ContentReader& target) {
  KIN_TRY_ASSIGN(const auto base, FileVcdiffBase::open(base_path));
  Bytes window(kVcdiffWindowBytes);
  std::uint64_t offset = 0, written = 0;
  const auto read = [&]() -> Result<ByteView> {
    KIN_TRY_ASSIGN(const std::size_t size, target.read_at(offset, window));
    offset += size;
    return ByteView(window).first(size);
  };
  VcdiffOptions options;
  options.level = 1;
  KIN_TRY(encode_vcdiff(
      *base, read,
      [&](ByteView bytes) -> Result<void> {
        written += bytes.size();
        return {};
      },
      options));
  return written;
}

}  // namespace

DeltaCost::DeltaCost()
    : codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(Effort::normal().quick_delta_level)) {
}

Result<std::uint64_t> DeltaCost::of(ByteView base, ByteView target) {
  KIN_TRY_ASSIGN(const Bytes payload, codec_->encode(base, target));
  return std::min<std::uint64_t>(payload.size(), target.size());
}

Result<std::uint64_t> DeltaCost::of_files(const std::string& base, const std::string& target,
                                          const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const auto from, FileContent::open(base));
  KIN_TRY_ASSIGN(const auto to, FileContent::open(target, stop));
  if (from->size() > kInMemoryBytes || to->size() > kInMemoryBytes) return vcdiff_bytes(base, *to);
  KIN_TRY_ASSIGN(const Bytes base_content, read_file(base, kInMemoryBytes));
  KIN_TRY_ASSIGN(const Bytes content, read_file(target, kInMemoryBytes));
  return of(base_content, content);
}

}  // namespace kin
