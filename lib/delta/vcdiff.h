// VCDIFF (RFC 3284): a target as copies from a base, copies from itself, and bytes of its own. Made and read
// by the xdelta3 library, with its extensions: a checksum per window, and reading of LZMA-compressed
// sections.
//
// Both directions stream, window by window, so that files of any size need a bounded amount of memory. A base
// is read in blocks. Nothing that a delta claims makes us allocate more than a window needs, but for
// LZMA-compressed sections: those may claim dictionaries of up to 256 MiB for each of three streams, which is
// the limit that scripts/setup builds into the library. Whatever a delta's bytes are, the answer is an error
// or a target of at most the length allowed.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cstdint>
#include <functional>
#include <limits>

namespace kin {

// The windows that we write. Readers, the xdelta3 program among them, take up to 16 MiB.
inline constexpr std::size_t kVcdiffWindowBytes = 8 << 20;

// What a delta is made against.
class VcdiffBase {
 public:
  virtual ~VcdiffBase() = default;

  virtual std::uint64_t size() const = 0;
  virtual std::size_t block_size() const = 0;  // a power of two, at most 1 GiB
  // A whole block, or of the last one what the base has of it; valid until the next call. Empty beyond the
  // end.
  virtual Result<ByteView> block(std::uint64_t number) = 0;
};

// A base in memory: one block. The bytes, at most 1 GiB, must outlive it.
class MemoryVcdiffBaseView : public VcdiffBase {
 public:
  explicit MemoryVcdiffBaseView(ByteView bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t block_size() const override;
  Result<ByteView> block(std::uint64_t number) override { return number == 0 ? bytes_ : ByteView(); }

 private:
  ByteView bytes_;
};

// Gives the next piece of the input, valid until the next call; an empty one at the end.
using VcdiffRead = std::function<Result<ByteView>()>;
using VcdiffWrite = std::function<Result<void>(ByteView bytes)>;

struct VcdiffOptions {
  int level = 3;           // 1 to 9, as the xdelta3 program has them
  bool checksums = false;  // an Adler-32 of each window, by which a reader notices a wrong base
  std::size_t window_bytes = kVcdiffWindowBytes;  // no piece is larger; smaller ones need less memory
};

// Each piece of the target becomes a window. No pieces are an empty target.
Result<void> encode_vcdiff(VcdiffBase& base, const VcdiffRead& target, const VcdiffWrite& write,
                           const VcdiffOptions& options);

struct VcdiffLimits {
  std::uint64_t target_bytes = std::numeric_limits<std::uint64_t>::max();  // one byte more is an error
  // For bytes that only kin writes: no application header, no compressed sections, no window that is empty or
  // reaches beyond the base. The delta must be one piece.
  bool strict = false;
};

struct VcdiffTarget {
  std::uint64_t bytes = 0;
  bool checked = true;  // every window had a checksum
};

// The first piece has at least six bytes unless that is all there is. Errors: unsupported if this is no
// VCDIFF, or of a kind that we cannot read; wrong_base if the base is too short or a checksum differs;
// corrupt else. What was written until then is worth nothing.
Result<VcdiffTarget> decode_vcdiff(VcdiffBase& base, const VcdiffRead& delta, const VcdiffWrite& write,
                                   const VcdiffLimits& limits = {});

}  // namespace kin
