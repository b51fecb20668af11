#include "formats/base64.h"
#include "formats/bzip2/member.h"
#include "formats/deflate_member.h"
#include "formats/formats.h"
#include "formats/idat_member.h"
#include "formats/quoted_printable.h"
#include "formats/xz/member.h"

namespace kin::formats {

const Formats& all() {
  // The first that says yes opens it.
  static const ContainerFormat kContainers[] = {kGzip, kBzip2, kXz,  kZip, kTar,  kAr,
                                                kCpio, kIso,   kPng, kPdf, kMbox, kMime};
  static const Coding kCodings[] = {
      // wire id, name, how it goes back
      {CodingId::deflate, "deflate", rebuild_deflate},
      {CodingId::base64, "base64", rebuild_base64},
      {CodingId::quoted_printable, "quoted-printable", rebuild_quoted_printable},
      {CodingId::bzip2, "bzip2", bzip2::rebuild},
      {CodingId::xz, "xz", xz::rebuild},
      {CodingId::png_idat, "png_idat", rebuild_idat},
  };
  static const Formats kAll{kContainers, kCodings};
  return kAll;
}

}  // namespace kin::formats
