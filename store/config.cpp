#include "store/config.h"

#include "lib/base/wire.h"

#include <fmt/core.h>

namespace kin::store {
namespace {

constexpr std::string_view kConfigMagic = "KINREPO1";
// Bits for features that a reader or a writer must know to go on; none are defined yet.
constexpr std::uint32_t kKnownReadFeatures = 0;
constexpr std::uint32_t kKnownWriteFeatures = 0;

Bytes encode_open_part(const Config& config) {
  WireWriter out;
  out.raw(as_bytes(kConfigMagic));
  out.u32(config.version);
  out.u32(kKnownReadFeatures);
  out.u32(kKnownWriteFeatures);
  out.raw(config.repository_id);
  out.u8(static_cast<std::uint8_t>(config.encryption));
  if (config.plain_master_key) out.raw(*config.plain_master_key);
  return out.take();
}

// The rest of the file, after the open part.
ByteView sealed_part(ByteView file, const Config& config) {
  return file.subspan(encode_open_part(config).size());
}

}  // namespace

Bytes encode_config(const Config& config, const Key& master_key) {
  Bytes out = encode_open_part(config);
  WireWriter parameters;
  parameters.signed_varint(config.created.seconds);
  parameters.varint(config.created.nanoseconds);
  parameters.varint(config.features);
  // What is 0 at the end is not written.
  const auto access = static_cast<std::uint64_t>(config.access);
  if (config.parity_percent > 0 || access > 0) parameters.varint(config.parity_percent);
  if (access > 0) parameters.varint(access);
  const Nonce nonce = random_nonce();
  const Bytes sealed =
      Sealer(config.encryption, sealing_key(master_key)).seal(nonce, out, parameters.bytes());
  append(out, nonce);
  append(out, sealed);
  return out;
}

Result<Config> decode_config(ByteView file) {
  WireReader in(file);
  if (as_text(in.raw(kConfigMagic.size())) != kConfigMagic)
    return Error(ErrorCode::corrupt, "config is not one that kin wrote");
  Config config;
  config.version = in.u32();
  const std::uint32_t read_features = in.u32();
  const std::uint32_t write_features = in.u32();
  config.writable = (write_features & ~kKnownWriteFeatures) == 0;
  if (config.version > kFormatVersion || (read_features & ~kKnownReadFeatures) != 0)
    return Error(
        ErrorCode::unsupported,
        fmt::format(
            "config says that the repository has format {} or features that need a newer kin (this one knows "
            "format {})",
            config.version, kFormatVersion));
  config.repository_id = in.array<32>();
  const std::uint8_t encryption = in.u8();
  if (encryption > 1)
    return Error(ErrorCode::unsupported,
                 "config says that the repository is encrypted in a way that needs a newer kin");
  if (config.version == 0) in.fail();
  config.encryption = static_cast<Encryption>(encryption);
  if (config.encryption == Encryption::none) config.plain_master_key = in.array<32>();
  if (in.failed()) return Error(ErrorCode::corrupt, "config is cut short or damaged");
  return config;
}

Result<void> verify_config(ByteView file, const Key& master_key, Config& config) {
  const ByteView rest = sealed_part(file, config);
  WireReader in(rest);
  const Nonce nonce = in.array<24>();
  auto parameters = Sealer(config.encryption, sealing_key(master_key))
                        .open(nonce, file.first(file.size() - rest.size()), rest.subspan(in.position()));
  if (!parameters) return std::move(parameters).error().context("config");
  WireReader fields(*parameters);
  config.created.seconds = fields.signed_varint();
  config.created.nanoseconds = static_cast<std::uint32_t>(fields.varint_up_to(999'999'999));
  // The first kin wrote none, and stored no features.
  if (fields.left() > 0) config.features = static_cast<unsigned>(fields.varint_up_to(kMostFeatures));
  if (fields.left() > 0) {
    config.parity_percent = static_cast<unsigned>(fields.varint_up_to(kMostParityPercent));
    if (config.parity_percent == 0 && fields.left() == 0) fields.fail();  // it is written as nothing
  }
  if (fields.left() > 0) {
    const std::uint64_t access = fields.varint_up_to(static_cast<std::uint64_t>(kMostAccess));
    if (access == 0) fields.fail();  // likewise
    config.access = static_cast<Access>(access);
  }
  if (config.features < Scanner::kLeastFeatures) fields.fail();
  return fields.finish("config");
}

Key sealing_key(const Key& master_key) { return derive_key(master_key, "kin seal"); }
Key object_id_key(const Key& master_key) { return derive_key(master_key, "kin object id"); }
Key segment_key(const Key& master_key) { return derive_key(master_key, "kin segment"); }
Key parity_key(const Key& master_key) { return derive_key(master_key, "kin parity"); }

}  // namespace kin::store
