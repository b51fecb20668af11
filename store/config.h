// The repository's config: format version, id, whether it is encrypted, and the parameters that must never
// change.
#pragma once

#include "lib/base/text.h"
#include "lib/similarity/scanner.h"
#include "store/crypto.h"

#include <optional>

namespace kin::store {

inline constexpr std::uint32_t kFormatVersion = 1;

struct Config {
  std::uint32_t version = kFormatVersion;
  bool writable = true;  // no feature that a writer must know and this one does not
  Digest repository_id{};
  Encryption encryption = Encryption::none;
  std::optional<Key> plain_master_key;  // unencrypted repositories keep it here, in the open
  Timestamp created;
  unsigned features = Scanner::kDefaultFeatures;  // the most in a sketch
};

Bytes encode_config(const Config& config, const Key& master_key);

// The open part can be read without a key; it is proven by verify_config once the key is known.
// unsupported if a newer kin made it; corrupt if it is no config.
Result<Config> decode_config(ByteView file);
Result<void> verify_config(ByteView file, const Key& master_key, Config& config);

// Each use of the master key has its own.
Key sealing_key(const Key& master_key);
Key object_id_key(const Key& master_key);
Key segment_key(const Key& master_key);

}  // namespace kin::store
