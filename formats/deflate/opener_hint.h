#pragma once

#include "formats/deflate/opener.h"
#include "formats/deflate/parameters.h"

namespace kin::formats::deflate {

class Opener::Hint {
 public:
  explicit Hint(const Parameters& given) : parameters(given) {}
  Parameters parameters;
};

}  // namespace kin::formats::deflate
