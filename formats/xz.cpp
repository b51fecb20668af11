// xz: .xz streams one after the other, which are one content. What follows the last is kept as it is.
#include "formats/formats.h"
#include "formats/xz/member.h"

namespace kin::formats {
namespace {

Result<void> open_xz(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  xz::Member member(in, limits);
  KIN_TRY(out.coded_member(CodingId::xz, "", member));
  KIN_TRY_ASSIGN(const ByteView rest, in.peek(1));
  return rest.empty() ? Result<void>() : out.member("", in);
}

}  // namespace

const ContainerFormat kXz = {"xz", xz::is_stream_start, open_xz};

}  // namespace kin::formats
