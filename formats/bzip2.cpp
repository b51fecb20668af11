// bzip2: streams one after the other, which are one content. What follows the last is kept as it is.
#include "formats/bzip2/member.h"
#include "formats/formats.h"

namespace kin::formats {
namespace {

Result<void> open_bzip2(PeekSource& in, PartSink& out, const ContainerLimits&) {
  bzip2::Member member(in);
  KIN_TRY(out.coded_member(CodingId::bzip2, "", member));
  KIN_TRY_ASSIGN(const ByteView rest, in.peek(1));
  return rest.empty() ? Result<void>() : out.member("", in);
}

}  // namespace

const ContainerFormat kBzip2 = {"bzip2", bzip2::is_stream_start, open_bzip2};

}  // namespace kin::formats
