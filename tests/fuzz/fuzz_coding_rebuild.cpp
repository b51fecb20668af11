// Members of containers from hostile bytes: every coding, from plain bytes and corrections that have nothing
// to do with each other. In whatever pieces it is asked for, the same comes out. The first bytes are which
// coding, and how many of the rest are the plain ones.
#include "formats/formats.h"
#include "lib/base/check.h"

#include <algorithm>
#include <cstdint>

namespace {

using namespace kin;

constexpr std::size_t kMost = 4 << 20;  // more is not asked for

struct Outcome {
  Bytes bytes;
  bool is_whole = false;
};

Outcome rebuild(const Coding& coding, ByteView plain, ByteView corrections, std::size_t piece_bytes) {
  const auto source =
      coding.rebuild(std::make_unique<MemorySource>(Bytes(plain.begin(), plain.end())),
                     std::make_unique<MemorySource>(Bytes(corrections.begin(), corrections.end())), nullptr);
  Outcome out;
  Bytes piece(piece_bytes);
  while (out.bytes.size() < kMost) {
    const auto got = source->read(piece);
    if (!got) return out;
    KIN_CHECK(*got <= piece.size());
    append(out.bytes, ByteView(piece).first(*got));
    if (*got < piece.size()) {
      out.is_whole = true;
      return out;
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const Coding> codings = formats::all().codings;
  const Coding& coding = codings[data[0] % codings.size()];
  const ByteView input(data + 2, size - 2);
  const std::size_t half = std::min<std::size_t>(input.size(), std::size_t{data[1]} * 8);
  const Outcome once = rebuild(coding, input.first(half), input.subspan(half), 64 << 10);
  if (once.bytes.size() > (64 << 10)) return 0;  // again in small pieces, it would make a slow fuzzer
  const Outcome again = rebuild(coding, input.first(half), input.subspan(half), 61);
  KIN_CHECK(once.is_whole == again.is_whole);
  if (once.is_whole) KIN_CHECK(once.bytes == again.bytes);
  return 0;
}
