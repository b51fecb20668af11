// How items are named to the other end of an exchange, and read from the store.
#pragma once

#include "lib/container/byte_source.h"
#include "lib/sync/peer_view.h"

#include <memory>
#include <optional>

namespace kin::sync {

// The front of an item's id, as long as it takes to name no other one here.
Result<Bytes> reference_to(Replica& replica, const ItemId& item);
// The item that the other end means; of several, the one that both have.
Result<std::optional<KnownItem>> resolve(Replica& replica, const PeerView& peer, ByteView reference);

// As the store last had it.
Result<Entry> entry_of(Replica& replica, const KnownItem& known);
Result<std::unique_ptr<ByteSource>> open_item(Replica& replica, SyncStore& store, const KnownItem& known);
// All of it, if it is still what it was; not_found, busy or io if not.
Result<Bytes> read_item(Replica& replica, SyncStore& store, const KnownItem& known);

}  // namespace kin::sync
