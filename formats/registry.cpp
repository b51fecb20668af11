#include "formats/deflate_member.h"
#include "formats/formats.h"

namespace kin::formats {

const Formats& all() {
  // The first that says yes opens it.
  static const ContainerFormat kContainers[] = {kGzip, kZip, kTar};
  static const Coding kCodings[] = {
      // wire id, name, how it goes back
      {CodingId::deflate, "deflate", rebuild_deflate},
  };
  static const Formats kAll{kContainers, kCodings};
  return kAll;
}

}  // namespace kin::formats
