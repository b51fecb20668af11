// ContainerFormat: how one kind of container comes apart. Coding: how one kind of member goes back.
//
// A format reads a container from front to back and hands out its parts, in order. Put one after the other,
// with each coded member encoded again, the parts are the container, bit for bit: whatever a format does not
// understand it hands out as it is. So a wrong guess costs time and room, and never a byte.
//
// A member's plain bytes are ordinary content: cut, deduplicated, opened in turn if they are a container.
// What its coding needs besides them to give back the exact bytes is its corrections.
//
// To add a format: one file, and one row in formats/registry.cpp (docs/containers.md).
#pragma once

#include "lib/container/peek_source.h"
#include "lib/container/search_budget.h"

#include <memory>
#include <span>
#include <string_view>

namespace kin {

// Written to disk; no number is ever reused.
enum class CodingId : std::uint8_t {
  none = 0,              // the plain bytes themselves
  deflate = 1,           // a raw deflate stream
  base64 = 2,            // lines of it, as in mail
  quoted_printable = 3,  // as in mail
  bzip2 = 4,
  xz = 5,
  zstd = 6,
  png_idat = 7,  // the chunks of an image
};

// The plain bytes of a coded member, which finds its corrections as it goes.
class MemberSource : public ByteSource {
 public:
  // Those found since the last call. Asked for after each read, so that they need not be held.
  virtual Bytes take_corrections() = 0;
  // How long the member was as it stood there. Asked for after the last read.
  virtual std::uint64_t encoded_bytes() const = 0;
};

// Where a format hands the parts to. An error is to be handed on at once.
class PartSink {
 public:
  virtual ~PartSink() = default;

  // Bytes between members: headers, padding, whatever was not understood.
  virtual Result<void> literal(ByteView bytes) = 0;
  // A member as it stands in the container. Reads the source to its end. `name` is for people, and may be
  // empty.
  virtual Result<void> member(std::string_view name, ByteSource& bytes) = 0;
  // A member that stood there encoded. Unless it is ContainerLimits::proven_later, the format has made sure
  // that plain bytes and corrections give back what stood there, as far as they were read.
  virtual Result<void> coded_member(CodingId coding, std::string_view name, MemberSource& plain) = 0;
};

struct ContainerLimits {
  // Coded members up to this size are opened in memory before anything of them is handed out; of larger ones,
  // the first pieces are gone when a later one turns out not to open, and the whole container stays closed.
  std::size_t memory_bytes = 8 << 20;
  // Whoever asked puts the container together and compares it, before anything of it is kept; and has it
  // opened again, without this, if it is not the same. So a good guess will do where a proof would take time.
  bool proven_later = false;
  // Must outlive the opening; none: no limit.
  SearchBudget* search = nullptr;
};

// What formats see before they decide: as much of the content's front, or all of it. An ISO image says what
// it is in its seventeenth sector.
inline constexpr std::size_t kHeadBytes = 17 * 2048;

struct ContainerFormat {
  const char* name;  // as in --unpack-only
  // Whether it looks like one. Cheap, and may be wrong.
  bool (*detect)(ByteView head);
  // Hands out all of `in`. corrupt or unsupported: it cannot be opened; then nothing of it is kept. Other
  // errors are those of `in` and `out`.
  Result<void> (*open)(PeekSource& in, PartSink& out, const ContainerLimits& limits);
  // To open one takes more time and room than most want to give: only who asks for it gets it.
  bool is_costly = false;
};

struct Coding {
  CodingId id;
  const char* name;
  // The member's encoded bytes. corrupt: the corrections do not fit the bytes. `search`, if given, outlives
  // the source; unsupported: it is spent.
  std::unique_ptr<ByteSource> (*rebuild)(std::unique_ptr<ByteSource> plain,
                                         std::unique_ptr<ByteSource> corrections, SearchBudget* search);
};

// What is opened, and what is understood of what was: formats::all() has all that this kin knows. Small, to
// be copied.
struct Formats {
  std::span<const ContainerFormat> containers;
  std::span<const Coding> codings;
  // Only for who opens a container, and plays what was opened before it is kept; it must outlive that.
  SearchBudget* search = nullptr;
};

// The first that it looks like; null: none.
const ContainerFormat* find_format(const Formats& formats, ByteView head);
const Coding* find_coding(const Formats& formats, CodingId id);  // null: made by a newer kin

}  // namespace kin
