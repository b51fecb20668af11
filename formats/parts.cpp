#include "formats/parts.h"

#include <limits>

namespace kin::formats {
namespace {

constexpr std::size_t kMostLiteralGap = 4096;

}  // namespace

Result<void> take_literal(PeekSource& in, PartSink& out, std::size_t size) {
  KIN_TRY_ASSIGN(const ByteView bytes, in.peek(size));
  KIN_TRY(out.literal(bytes));
  in.skip(bytes.size());
  return {};
}

Result<void> take_gap(PeekSource& in, PartSink& out, std::uint64_t size) {
  if (size <= kMostLiteralGap) return take_literal(in, out, static_cast<std::size_t>(size));
  KIN_TRY_ASSIGN(const ByteView start, in.peek(kMostLiteralGap + 1));
  if (start.size() <= kMostLiteralGap) return take_literal(in, out, start.size());
  LimitedSource bytes(in, size);
  return out.member("", bytes);
}

Result<void> take_rest(PeekSource& in, PartSink& out) {
  return take_gap(in, out, std::numeric_limits<std::uint64_t>::max());
}

Result<void> refuse_if_small(const PeekSource& in, const ContainerLimits& limits, const char* why) {
  return in.position() < limits.memory_bytes ? Result<void>(Error(ErrorCode::unsupported, why))
                                             : Result<void>();
}

}  // namespace kin::formats
