// SharedValuesIndex: the PrintIndex of all detectors whose prints are sets of numbers, of which similar files
// have many in common.
#pragma once

#include "lib/similarity/detector.h"

namespace kin {

// What two prints have in common, from which a measure makes a similarity. Values that a print has several
// times are counted as often.
struct SharedValues {
  std::size_t query_values = 0, other_values = 0;  // all
  std::size_t query_shared = 0, other_shared = 0;  // those that the other side has too
  std::size_t distinct_shared = 0;                 // each once
  SharedValues reversed() const {
    return {other_values, query_values, other_shared, query_shared, distinct_shared};
  }
};

using Measure = double (*)(const SharedValues& shared);

std::unique_ptr<PrintIndex> make_shared_values_index(Measure measure);

}  // namespace kin
