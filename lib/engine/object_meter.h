// ObjectMeter: told what a backup meets, and what each new object would take by itself: for who tells what is
// saved, and by what.
#pragma once

#include "lib/object/object_id.h"
#include "lib/object/object_store.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kin {

// What peers compress at unless told otherwise, restic among them.
inline constexpr int kAloneLevel = 3;

struct MeasuredObject {
  ObjectId id;
  std::uint64_t size = 0;
  std::uint64_t alone_bytes = 0;  // compressed by itself, by zstd at kAloneLevel
  // The smallest of those tried: against the kin with the most features in common, or several of them if the
  // effort is such. Nothing if none was smaller than the object.
  std::optional<std::uint64_t> delta_bytes;
  ObjectId base;
  unsigned matches = 0;  // features in common with the base
  // Only for who compares: against each base that was tried with as many features in common; and against the
  // best, by each program alone.
  std::vector<std::uint64_t> equal_deltas = {};
  std::uint64_t zstd_bytes = 0, xdelta3_bytes = 0;
};

class ObjectMeter {
 public:
  virtual ~ObjectMeter() = default;
  // Deltas are to be made by each program, which takes twice the time.
  virtual bool compares() const { return false; }

  // An object that a file has, as often as files have it. One thread at a time.
  virtual void on_met(const ObjectId& id, bool is_new) = 0;
  // One that is new, content or a recipe. One thread at a time, maybe not the same one.
  virtual void on_tried(const MeasuredObject& object) = 0;
};

}  // namespace kin
