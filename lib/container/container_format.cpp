#include "lib/container/container_format.h"

namespace kin {

const ContainerFormat* find_format(const Formats& formats, ByteView head) {
  for (const ContainerFormat& format : formats.containers)
    if (format.detect(head)) return &format;
  return nullptr;
}

const Coding* find_coding(const Formats& formats, CodingId id) {
  for (const Coding& coding : formats.codings)
    if (coding.id == id) return &coding;
  return nullptr;
}

}  // namespace kin
