#include "tests/support/source_directory.h"

namespace kin::testing {

std::string source_directory() { return KIN_SOURCE_DIRECTORY; }

}  // namespace kin::testing
