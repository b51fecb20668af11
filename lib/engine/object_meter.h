// ObjectMeter: told what a backup meets, and what each new object would take by itself: for who tells what is
// saved, and by what.
#pragma once

#include "lib/object/object_id.h"
#include "lib/object/object_store.h"

#include <cstdint>
#include <optional>

namespace kin {

// What peers compress at unless told otherwise, restic among them.
inline constexpr int kAloneLevel = 3;

struct MeasuredObject {
  ObjectId id;
  std::uint64_t size = 0;
  std::uint64_t alone_bytes = 0;  // compressed by itself, by zstd at kAloneLevel
  // Against the kin with the most features in common that could be had; nothing if none was tried.
  std::optional<std::uint64_t> delta_bytes;
  ObjectId base;
  unsigned matches = 0;  // features in common with the base
};

class ObjectMeter {
 public:
  virtual ~ObjectMeter() = default;

  // An object that a file has, as often as files have it. One thread at a time.
  virtual void on_met(const ObjectId& id, bool is_new) = 0;
  // One that is new, content or a recipe. One thread at a time, maybe not the same one.
  virtual void on_tried(const MeasuredObject& object) = 0;
};

}  // namespace kin
