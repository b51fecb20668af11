// xz: .xz streams one after the other, which are one content. What follows the last is kept as it is.
#include "formats/formats.h"
#include "formats/xz/limits.h"
#include "formats/xz/member.h"

namespace kin::formats {
namespace {

// What is too large to be held until it is proven is refused early if it can be, before anything is taken of
// it: then it stays closed alone, and not with all that is around it.
Result<void> try_front(PeekSource& in, const ContainerLimits& limits) {
  const std::size_t most_bytes = xz::most_encoded_bytes(limits.memory_bytes);
  KIN_TRY_ASSIGN(const ByteView file, in.peek(most_bytes + 1));
  if (file.size() > most_bytes) return Error(ErrorCode::unsupported, "xz: too large: the file");
  if (file.size() < limits.memory_bytes) return {};
  MemoryView view(file);
  PeekSource again(view);
  ContainerLimits guess = limits;
  guess.proven_later = true;
  xz::Member member(again, guess);
  Bytes front(1);
  KIN_TRY(member.read(front));
  return {};
}

Result<void> open_xz(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  KIN_TRY(try_front(in, limits));
  xz::Member member(in, limits);
  KIN_TRY(out.coded_member(CodingId::xz, "", member));
  KIN_TRY_ASSIGN(const ByteView rest, in.peek(1));
  return rest.empty() ? Result<void>() : out.member("", in);
}

}  // namespace

const ContainerFormat kXz = {"xz", xz::is_stream_start, open_xz, true};

}  // namespace kin::formats
