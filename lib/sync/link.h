// Link: the other end as two descriptors, and what was read of it before its time. Of whoever runs an
// exchange or a pause over it.
#pragma once

#include "lib/sync/frame.h"

namespace kin::sync {

struct Link {
  int in = -1, out = -1;
  FrameReader reader;
};

}  // namespace kin::sync
