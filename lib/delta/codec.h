// Codec: content to payload and back, alone or against a base. One instance per thread: codecs keep contexts
// and buffers.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cstdint>
#include <memory>
#include <span>

namespace kin {

class Codec {
 public:
  virtual ~Codec() = default;

  // `base` is empty for none. The payload decodes only with the same base. The two must not share memory:
  // zstd would not look into the base then.
  virtual Result<Bytes> encode(ByteView base, ByteView content) = 0;

  // Gives exactly `size` bytes (which the caller has bounded), or corrupt. Never crashes, whatever the
  // payload.
  virtual Result<Bytes> decode(ByteView base, ByteView payload, std::size_t size) = 0;
};

// Written to disk; no number is ever reused.
enum class CodecId : std::uint8_t { plain = 0, zstd = 1, xdelta3 = 2 };

struct CodecEntry {
  CodecId id;
  const char* name;
  std::unique_ptr<Codec> (*make)(int level);
};

// The visible table of all codecs; conformance tests loop over it.
std::span<const CodecEntry> all_codecs();
const CodecEntry* find_codec(std::uint8_t id);  // null: made by a newer kin

}  // namespace kin
