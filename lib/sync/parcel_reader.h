// ParcelReader: the contents that are in the parcels of one exchange, made of what is here. One thread at a
// time.
#pragma once

#include "lib/sync/block_delta.h"
#include "lib/sync/content_files.h"
#include "lib/sync/item_access.h"
#include "lib/sync/parcel.h"

#include <optional>
#include <vector>

namespace kin::sync {

class ParcelReader {
 public:
  // All must outlive it; `formats` may be null.
  ParcelReader(Replica& replica, SyncStore& store, const ContentFiles& trash, const Formats* formats,
               const PeerView& peer);

  struct Contents {
    std::vector<Piece> pieces;
    std::vector<Piece> lost;  // without content: what they are differences from is gone
  };
  // wrong_base: a base is gone, or it leans on a parcel that was not understood. Any other error is the end
  // of the exchange.
  Result<Contents> read(ByteView payload);

 private:
  Result<Bytes> prefix_of(const ParcelHead& head);
  Result<Bytes> play(const Piece& piece);
  Result<std::unique_ptr<ByteSource>> open_former(const Piece& piece);

  Replica& replica_;
  SyncStore& store_;
  const ContentFiles& trash_;
  const Formats* const formats_;
  const PeerView& peer_;

  SentWindow window_;
  bool window_is_whole_ = true;  // false: a parcel was not understood, and later ones may lean on it
  const std::unique_ptr<Codec> codec_;
  // Of a content that comes in several pieces.
  std::optional<BlockPatcher> patcher_;
  Stamp patched_;
  std::unordered_set<ItemId, ItemIdHash>
      opened_;  // each once, so that nobody makes this end read all the time
};

}  // namespace kin::sync
