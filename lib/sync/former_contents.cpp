#include "lib/sync/former_contents.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::size_t kKeptContents = 3;

Bytes signatures_key(const ItemId& file) {
  Bytes out{'s'};
  append(out, file);
  return out;
}

}  // namespace

Result<void> note_content(Replica& replica, const ItemId& file, BlockSignature signature) {
  const Bytes key = signatures_key(file);
  KIN_TRY_ASSIGN(const auto row, replica.note(key));
  std::vector<BlockSignature> all = row ? decode_signatures(*row) : std::vector<BlockSignature>();
  std::erase_if(all, [&](const BlockSignature& one) { return one.object == signature.object; });
  all.insert(all.begin(), std::move(signature));
  all.resize(std::min(all.size(), kKeptContents));
  replica.set_note(key, encode_signatures(all));
  return {};
}

Result<std::optional<BlockSignature>> former_content(Replica& replica, const ItemId& file,
                                                     const ObjectId& object) {
  KIN_TRY_ASSIGN(const auto row, replica.note(signatures_key(file)));
  if (row)
    for (BlockSignature& one : decode_signatures(*row))
      if (one.object == object) return std::optional(std::move(one));
  return std::optional<BlockSignature>();
}

void forget_contents(Replica& replica, const ItemId& file) {
  replica.set_note(signatures_key(file), std::nullopt);
}

}  // namespace kin::sync
