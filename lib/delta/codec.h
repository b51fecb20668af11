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

  // Fills `content` exactly, or corrupt. Never crashes, whatever the payload.
  virtual Result<void> decode_into(ByteView base, ByteView payload, std::span<std::uint8_t> content) = 0;

  // The same into memory of its own; the caller has bounded `size`.
  Result<Bytes> decode(ByteView base, ByteView payload, std::size_t size) {
    Bytes content(size);
    KIN_TRY(decode_into(base, payload, content));
    return content;
  }

  // Of the encodings that follow. One context serves all levels: a context each would cost megabytes.
  void set_level(int level) { level_ = level; }

 protected:
  explicit Codec(int level) : level_(level) {}
  int level() const { return level_; }

 private:
  int level_;
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
