// Where the sources of this build are: tests read files of theirs. In a file of its own, so that a compiler
// cache serves all others for a clone that is elsewhere.
#pragma once

#include <string>

namespace kin::testing {

std::string source_directory();  // without a slash at its end

}  // namespace kin::testing
