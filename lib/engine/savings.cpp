#include "lib/engine/savings.h"

#include "lib/base/hash.h"
#include "lib/base/wire.h"

#include <algorithm>
#include <cstring>

namespace kin {
namespace {

// Ids and digests are as good as random: of 2^64, a billion have one chance in forty to share any.
std::uint64_t start_of(const auto& bytes) {
  std::uint64_t out;
  static_assert(sizeof bytes >= sizeof out);
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

}  // namespace

void SavingsMeter::on_met(const ObjectId& id, bool is_new) {
  if (!is_new) ++repeats_[start_of(id.bytes)];
}

void SavingsMeter::on_tried(const MeasuredObject& object) {
  alone_.push_back({start_of(object.id.bytes), object.alone_bytes});
  of_objects_.chunks += object.alone_bytes;
  const bool pays = object.delta_bytes && *object.delta_bytes < object.alone_bytes;
  of_objects_.deltas += pays ? *object.delta_bytes : object.alone_bytes;
  if (pays) ++of_objects_.delta_objects;
}

void SavingsMeter::on_file(std::uint64_t size, const std::vector<Extent>& content) {
  WireWriter out;
  for (const Extent& extent : content) encode_extent(extent, out);
  if (!files_.insert(start_of(hash(out.bytes()))).second) return;
  ++of_files_.distinct_files;
  of_files_.distinct_file_bytes += size;
}

Savings SavingsMeter::result() {
  Savings out = of_objects_;
  out.distinct_files = of_files_.distinct_files;
  out.distinct_file_bytes = of_files_.distinct_file_bytes;
  for (const Alone& object : alone_) {
    const auto again = repeats_.find(object.id);
    out.alone += object.bytes * (1 + (again == repeats_.end() ? 0 : again->second));
  }
  return out;
}

}  // namespace kin
