#include "lib/base/allocator.h"

#include <malloc.h>

namespace kin {

void set_up_allocator() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace kin
