#include "lib/object/object_id.h"

#include "lib/base/check.h"
#include "lib/base/text.h"

#include <algorithm>

namespace kin {

std::string ObjectId::hex() const { return kin::hex(bytes); }

std::string ObjectId::short_hex() const { return kin::hex(ByteView(bytes).first(4)); }

std::optional<ObjectId> ObjectId::from_hex(std::string_view text) {
  const std::optional<Bytes> bytes = kin::from_hex(text);
  if (!bytes || bytes->size() != sizeof(Digest)) return std::nullopt;
  return from_bytes(*bytes);
}

ObjectId ObjectId::from_bytes(ByteView bytes) {
  ObjectId id;
  KIN_CHECK(bytes.size() == id.bytes.size());
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

}  // namespace kin
