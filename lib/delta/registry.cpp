#include "lib/delta/codec.h"

namespace kin {

std::unique_ptr<Codec> make_plain_codec(int level);
std::unique_ptr<Codec> make_zstd_codec(int level);
std::unique_ptr<Codec> make_xdelta3_codec(int level);

namespace {

constexpr CodecEntry kCodecs[] = {
    // wire id, name, factory
    {CodecId::plain, "plain", make_plain_codec},
    {CodecId::zstd, "zstd", make_zstd_codec},
    {CodecId::xdelta3, "xdelta3", make_xdelta3_codec},
};

}  // namespace

std::span<const CodecEntry> all_codecs() { return kCodecs; }

const CodecEntry* find_codec(std::uint8_t id) {
  for (const CodecEntry& entry : kCodecs)
    if (static_cast<std::uint8_t>(entry.id) == id) return &entry;
  return nullptr;
}

}  // namespace kin
