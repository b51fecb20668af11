// Names that cut trees: for tests of trees of every shape. A quarter of a million are tried for each.
#pragma once

#include <string>

namespace kin::testing {

// A name of 250 bytes after which both a leaf and an inner node of the first level are cut, if they have
// their least size. Names are ordered as their numbers are, up to 999,999.
std::string cutting_name(int number);

}  // namespace kin::testing
