#include "lib/sync/item_access.h"

#include "lib/sync/content_files.h"
#include "lib/sync/record.h"

namespace kin::sync {

Result<Bytes> reference_to(Replica& replica, const ItemId& item) {
  std::size_t length = kLeastReferenceBytes;
  for (; length < item.size(); ++length) {
    KIN_TRY_ASSIGN(const auto found, replica.find_by_prefix(ByteView(item).first(length), 2));
    if (found.size() < 2) break;
  }
  return Bytes(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(length));
}

Result<std::optional<KnownItem>> resolve(Replica& replica, const PeerView& peer, ByteView reference) {
  constexpr std::size_t kMost = 64;
  KIN_TRY_ASSIGN(std::vector<KnownItem> found, replica.find_by_prefix(reference, kMost));
  if (found.size() > 1)
    std::erase_if(found, [&](const KnownItem& known) { return peer.state_of(known) == nullptr; });
  if (found.size() != 1) return std::optional<KnownItem>();
  return std::optional<KnownItem>(std::move(found.front()));
}

Result<Entry> entry_of(Replica& replica, const KnownItem& known) {
  KIN_TRY_ASSIGN(const auto seen, replica.entry(known.item.folder, known.local));
  Entry entry;
  entry.local = known.local;
  entry.item = known.item;
  if (seen) entry.fingerprint = seen->fingerprint;
  return entry;
}

Result<std::unique_ptr<ByteSource>> open_item(Replica& replica, SyncStore& store, const KnownItem& known) {
  KIN_TRY_ASSIGN(const Entry entry, entry_of(replica, known));
  return store.read(known.item.folder, entry);
}

Result<Bytes> read_item(Replica& replica, SyncStore& store, const KnownItem& known) {
  KIN_TRY_ASSIGN(const auto source, open_item(replica, store, known));
  KIN_TRY_ASSIGN(Bytes content, read_all(*source, known.item.size));
  if (object_id(content) != known.item.object) return Error(ErrorCode::busy, "it has changed meanwhile");
  return content;
}

}  // namespace kin::sync
