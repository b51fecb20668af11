// What the user's MH profile says of how MH stores are kept: $MH, or else ~/.mh_profile. Functions without
// state, for any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kin::sync {

struct MhProfile {
  enum class Locking { fcntl, flock, dot };

  std::vector<std::string> unseen{"unseen"};  // Unseen-Sequence: a message in any of these is not seen
  Locking locking = Locking::fcntl;           // datalocking: of .mh_sequences

  // Every text is one: what makes no sense, or cannot be, is as if it were not there.
  static MhProfile parse(std::string_view text);
  // As if it were empty, if there is none that can be read.
  static MhProfile load();
};

}  // namespace kin::sync
