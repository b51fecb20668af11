#include "formats/deflate/self_test.h"

#include "formats/deflate/whole.h"

namespace kin::formats::deflate {

Result<void> self_test() { return {}; }

}  // namespace kin::formats::deflate
