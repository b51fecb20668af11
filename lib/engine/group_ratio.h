// GroupRatio: how small groups have become lately, as the price of putting one more object into a group.
//
// Groups are encoded by several threads, and what BlockAssembler decides must not depend on which is quicker.
// So it asks for the ratio after a certain group, and waits for that one; asking for the one before the last
// costs no time.
#pragma once

#include "lib/base/mutex.h"

#include <cstdint>
#include <map>

namespace kin {

class GroupRatio {
 public:
  // Group `number` (0, 1, ...) is encoded.
  void report(std::uint64_t number, std::size_t content_bytes, std::size_t stored_bytes);
  // Encoded bytes per byte of content in the first `groups` groups, the latest counting most.
  double after(std::uint64_t groups);
  // Nothing will be reported any more: after() no longer waits.
  void cancel();

 private:
  struct Sizes {
    std::size_t content, stored;
  };

  Mutex mutex_;
  CondVar reported_;
  std::map<std::uint64_t, Sizes> waiting_ KIN_GUARDED_BY(mutex_);
  std::uint64_t counted_ KIN_GUARDED_BY(mutex_) = 0;  // groups in the sums below
  // As if one group of text had gone before.
  double content_ KIN_GUARDED_BY(mutex_) = 1, stored_ KIN_GUARDED_BY(mutex_) = 0.4;
  bool cancelled_ KIN_GUARDED_BY(mutex_) = false;
};

}  // namespace kin
