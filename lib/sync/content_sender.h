// ContentSender: new contents, as parcels. Small ones first, newest first, many in a parcel; then large ones,
// smallest first, each in pieces. One thread at a time.
#pragma once

#include "lib/sync/base_finder.h"
#include "lib/sync/block_delta.h"
#include "lib/sync/content_files.h"
#include "lib/sync/parcel.h"
#include "lib/sync/peer_view.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>

namespace kin::sync {

struct ContentTask {
  ItemId item{};
  Stamp replaces;
  std::uint64_t size = 0;
  std::int64_t time = 0;
  bool alone = false;  // without bases and window: what was sent before was not understood
};

class ContentSender {
 public:
  using OnSkipped = std::function<void(const KnownItem& known, const Error& error)>;

  // All must outlive it. `formats` may be null: then nothing is opened.
  ContentSender(Replica& replica, SyncStore& store, BaseFinder& bases, const Formats* formats,
                const PeerView& peer, OnSkipped on_skipped);

  void add(const ContentTask& task);
  // Before all others.
  void add_again(const ContentTask& task);
  // The peer has so much of a content already.
  void set_held(const ObjectId& object, std::uint64_t bytes) { held_[object] = bytes; }
  void forget_held(const ObjectId& object) { held_.erase(object); }
  // Of what is sent from now on, nothing leans on what was sent before.
  void clear_window() { window_.clear(); }
  // Of the link, in bytes a second; 0: not known yet. How hard it tries to make things small follows it.
  void set_speed(std::uint64_t bytes_per_second) { speed_ = bytes_per_second; }

  bool empty() const { return small_.empty() && large_.empty() && !large_source_; }
  std::uint64_t bytes_left() const { return bytes_left_; }

  struct Made {
    std::vector<Piece> pieces;
    Bytes payload;
  };
  // Nothing: what was next could not be read, and is left out.
  Result<std::optional<Made>> next();

 private:
  void sort();
  Result<std::optional<KnownItem>> find(const ContentTask& task);
  Result<std::optional<BlockSignature>> former_of(const KnownItem& known);
  Result<bool> add_small(const ContentTask& task, std::vector<Piece>& pieces);
  Result<std::vector<ContentTask>> gather(std::vector<Piece>& pieces);
  bool halve(std::vector<Piece>& pieces, std::vector<ContentTask>& taken);
  Result<std::size_t> encode(Made& made, bool alone);
  Result<bool> begin_large();
  Result<bool> add_large(std::vector<Piece>& pieces);
  Result<Bytes> choose_bases(const std::vector<Piece>& pieces, std::vector<Bytes>& references);
  std::size_t parcel_target() const;
  int level() const;

  Replica& replica_;
  SyncStore& store_;
  BaseFinder& bases_;
  const Formats* const formats_;
  const PeerView& peer_;
  const OnSkipped on_skipped_;

  std::deque<ContentTask> small_, large_;
  bool sorted_ = false;
  std::uint64_t bytes_left_ = 0;
  std::map<ObjectId, std::uint64_t> held_;

  // The large content that is being sent.
  std::unique_ptr<ByteSource> large_source_;
  ContentTask large_task_;
  KnownItem large_item_;
  std::uint64_t large_offset_ = 0;
  std::optional<BlockMatcher> large_matcher_;
  ObjectId large_former_;
  Bytes large_ahead_;  // read, and from large_at_ on not sent yet
  std::size_t large_at_ = 0;

  SentWindow window_;
  std::unique_ptr<Codec> codec_;
  double ratio_ = 3;  // of content to parcel, lately
  std::uint64_t speed_ = 0;
};

}  // namespace kin::sync
