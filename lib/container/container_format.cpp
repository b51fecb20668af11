#include "lib/container/container_format.h"

namespace kin {

const Coding* find_coding(const Formats& formats, CodingId id) {
  for (const Coding& coding : formats.codings)
    if (coding.id == id) return &coding;
  return nullptr;
}

}  // namespace kin
