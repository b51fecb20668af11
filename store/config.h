// The repository's config: format version, id, whether it is encrypted, and the parameters, of which only
// the parity and the access may change.
#pragma once

#include "lib/base/text.h"
#include "lib/similarity/scanner.h"
#include "store/access.h"
#include "store/crypto.h"

#include <optional>

namespace kin::store {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr unsigned kMostParityPercent = 100;

struct Config {
  std::uint32_t version = kFormatVersion;
  bool writable = true;  // no feature that a writer must know and this one does not
  Digest repository_id{};
  Encryption encryption = Encryption::none;
  std::optional<Key> plain_master_key;  // unencrypted repositories keep it here, in the open
  Timestamp created;
  unsigned features = Scanner::kDefaultFeatures;  // the most in a sketch
  unsigned parity_percent = 0;                    // of the packs' bytes, written as parity for them
  Access access = Access::read_write;
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
Key parity_key(const Key& master_key);

}  // namespace kin::store
