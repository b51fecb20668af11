// SavingsMeter: what the content of a backup takes by simpler schemes than kin's, added up as it goes by.
#pragma once

#include "lib/engine/object_meter.h"
#include "lib/object/content.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kin {

// All in bytes of content, without what any store needs besides.
struct Savings {
  std::uint64_t distinct_files = 0, distinct_file_bytes = 0;  // identical files once
  std::uint64_t alone = 0;          // each file compressed by itself, identical ones each time
  std::uint64_t chunks = 0;         // each object compressed by itself, once
  std::uint64_t deltas = 0;         // the same; as a delta where that is smaller
  std::uint64_t delta_objects = 0;  // for which it is
};

class SavingsMeter : public ObjectMeter {
 public:
  void on_met(const ObjectId& id, bool is_new) override;
  void on_tried(const MeasuredObject& object) override;
  // A file whose objects were met. By the thread of on_met().
  void on_file(std::uint64_t size, const std::vector<Extent>& content);

  // When the backup is done.
  Savings result();

 private:
  // Of on_met().
  std::unordered_map<std::uint64_t, std::uint64_t> repeats_;  // beyond the first time, by the id's start
  std::unordered_set<std::uint64_t> files_;                   // by the start of their contents' digests
  Savings of_files_;
  // Of on_tried(). A line for each object, so as small as can be.
  struct Alone {
    std::uint64_t id;
    std::uint64_t bytes;
  };
  std::vector<Alone> alone_;
  Savings of_objects_;
};

}  // namespace kin
