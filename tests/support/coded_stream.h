// Streams of any coding, opened and rebuilt in memory: for tests and benchmarks of each.
#pragma once

#include "lib/base/result.h"
#include "lib/container/peek_source.h"

#include <memory>

namespace kin::testing {

inline Result<Bytes> read_to_end(ByteSource& source) {
  Bytes out, buffer(64 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    append(out, ByteView(buffer).first(got));
    if (got < buffer.size()) return out;
  }
}

struct Opened {
  Bytes plain, corrections;
  std::uint64_t encoded_bytes = 0;
};

// By the member that `make` makes of a PeekSource.
Result<Opened> open_with(const Bytes& file, const auto& make) {
  MemorySource source(file);
  PeekSource in(source);
  auto member = make(in);
  Opened out;
  Bytes buffer(64 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, member.read(buffer));
    append(out.plain, ByteView(buffer).first(got));
    append(out.corrections, member.take_corrections());
    if (got == buffer.size()) continue;
    out.encoded_bytes = member.encoded_bytes();
    if (in.position() != out.encoded_bytes) return Error(ErrorCode::io, "read more than was told");
    return out;
  }
}

// `rebuild` is that of the coding.
Result<Bytes> rebuild_with(const Bytes& plain, const Bytes& corrections, const auto& rebuild) {
  const auto source =
      rebuild(std::make_unique<MemorySource>(plain), std::make_unique<MemorySource>(corrections));
  return read_to_end(*source);
}

}  // namespace kin::testing
