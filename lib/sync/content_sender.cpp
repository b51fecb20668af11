#include "lib/sync/content_sender.h"

#include "lib/sync/former_contents.h"
#include "lib/sync/item_access.h"
#include "lib/sync/opened_content.h"

#include <algorithm>

namespace kin::sync {
namespace {

// As it travels: what is lost when a link is cut is at most this. A parcel is filled with what is likely to
// make the first, and is made smaller if it comes out larger than the second.
constexpr std::size_t kParcelGoalBytes = 26 << 10, kMostPayloadBytes = 30 << 10;
constexpr std::size_t kLeastTargetBytes = 24 << 10, kMostTargetBytes = 1 << 20;
constexpr std::uint64_t kLargeBytes = 32 << 10;
constexpr std::size_t kPiecesPerParcel = 256;
constexpr std::size_t kMostOpenedBytes = 1 << 20;  // of one content: a parcel has its bounds
constexpr std::size_t kBasesPerPiece = 3, kBasesPerParcel = 48;
constexpr std::uint64_t kMostBaseContentBytes =
    256 << 10;  // of one: the front of it would do, but both must agree
constexpr std::size_t kBasesBytes = 2 << 20;
constexpr std::uint64_t kSlowBytes = 200'000, kFastBytes = 2'000'000;  // a second

// So many bytes more, behind what is there.
Result<void> read_more(ByteSource& source, std::uint64_t bytes, Bytes& into) {
  const std::size_t before = into.size();
  into.resize(before + static_cast<std::size_t>(bytes));
  KIN_TRY_ASSIGN(const std::size_t got, source.read(std::span(into).subspan(before)));
  return got == bytes ? Result<void>() : Error(ErrorCode::busy, "it has changed meanwhile");
}

}  // namespace

ContentSender::ContentSender(Replica& replica, SyncStore& store, BaseFinder& bases, const Formats* formats,
                             const PeerView& peer, OnSkipped on_skipped)
    : replica_(replica),
      store_(store),
      bases_(bases),
      formats_(formats),
      peer_(peer),
      on_skipped_(std::move(on_skipped)),
      codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(19)) {}

void ContentSender::add(const ContentTask& task) {
  (task.size > kLargeBytes ? large_ : small_).push_back(task);
  bytes_left_ += task.size;
  sorted_ = false;
}

void ContentSender::add_again(const ContentTask& task) {
  if (large_source_ && large_task_.item == task.item) large_source_.reset();
  (task.size > kLargeBytes ? large_ : small_).push_front(task);
  bytes_left_ += task.size;
}

void ContentSender::sort() {
  if (std::exchange(sorted_, true)) return;
  std::stable_sort(small_.begin(), small_.end(),
                   [](const ContentTask& a, const ContentTask& b) { return a.time > b.time; });
  std::stable_sort(large_.begin(), large_.end(),
                   [](const ContentTask& a, const ContentTask& b) { return a.size < b.size; });
}

// Nothing: it needs not be sent any more.
Result<std::optional<KnownItem>> ContentSender::find(const ContentTask& task) {
  KIN_TRY_ASSIGN(auto known, replica_.find(task.item));
  if (known && (known->deleted || peer_.has_sent(*known))) known.reset();
  return known;
}

// Of the content that the peer has of a file, if it was here once.
Result<std::optional<BlockSignature>> ContentSender::former_of(const KnownItem& known) {
  const Item* const theirs = peer_.state_of(known);
  if (known.item.type != ItemType::file || theirs == nullptr || theirs->type != ItemType::file)
    return std::optional<BlockSignature>();
  return former_content(replica_, known.id, theirs->object);
}

// False: it is left out.
Result<bool> ContentSender::add_small(const ContentTask& task, std::vector<Piece>& pieces) {
  bytes_left_ -= std::min(bytes_left_, task.size);
  KIN_TRY_ASSIGN(const auto known, find(task));
  if (!known) return false;
  auto content = read_item(replica_, store_, *known);
  if (!content) {
    on_skipped_(*known, content.error());
    return false;
  }
  Piece piece;
  piece.stamp = known->stamp;
  piece.replaces = task.replaces;
  piece.item = known->item;
  piece.content = *std::move(content);
  piece.length = piece.content.size();
  piece.travels = piece.content;
  if (!task.alone) {  // what was not understood once is sent as it is
    KIN_TRY_ASSIGN(const auto former, former_of(*known));
    BlockDifference difference;
    if (former)
      difference = BlockMatcher(*former).next(piece.content, true, std::max<std::size_t>(piece.length, 1));
    // With less in common, other bases may serve better.
    if (former && difference.new_bytes < piece.length / 4 * 3) {
      piece.form = Piece::Form::difference;
      piece.former = former->object;
      piece.travels = std::move(difference.steps);
    } else if (formats_ != nullptr) {
      if (auto opened = open_content(*formats_, piece.content);
          opened && opened->size() <= kMostOpenedBytes) {
        piece.form = Piece::Form::opened;
        piece.travels = *std::move(opened);
      }
    }
  }
  pieces.push_back(std::move(piece));
  return true;
}

// False: it is left out.
Result<bool> ContentSender::begin_large() {
  large_task_ = large_.front();
  large_.pop_front();
  KIN_TRY_ASSIGN(auto known, find(large_task_));
  if (!known) {
    bytes_left_ -= std::min(bytes_left_, large_task_.size);
    return false;
  }
  const auto held = held_.find(known->item.object);
  const std::uint64_t held_bytes = held == held_.end() || held->second >= known->item.size ? 0 : held->second;
  const auto open_behind = [&]() -> Result<std::unique_ptr<ByteSource>> {
    KIN_TRY_ASSIGN(auto source, open_item(replica_, store_, *known));
    Bytes passed;
    for (std::uint64_t left = held_bytes; left > 0; left -= passed.size()) {
      passed.clear();
      KIN_TRY(read_more(*source, std::min<std::uint64_t>(left, 256 << 10), passed));
    }
    return source;
  };
  auto source = open_behind();
  if (!source) {
    on_skipped_(*known, source.error());
    bytes_left_ -= std::min(bytes_left_, large_task_.size);
    return false;
  }
  large_matcher_.reset();
  large_ahead_.clear();
  large_at_ = 0;
  if (!large_task_.alone) {
    KIN_TRY_ASSIGN(const auto former, former_of(*known));
    if (former) {
      large_matcher_.emplace(*former);
      large_former_ = former->object;
    }
  }
  bytes_left_ -= std::min(bytes_left_, held_bytes);
  large_source_ = *std::move(source);
  large_item_ = *std::move(known);
  large_offset_ = held_bytes;
  return true;
}

Result<bool> ContentSender::add_large(std::vector<Piece>& pieces) {
  if (!large_source_) {
    KIN_TRY_ASSIGN(const bool has_begun, begin_large());
    if (!has_begun) return false;
  }
  Piece piece;
  piece.stamp = large_item_.stamp;
  piece.replaces = large_task_.replaces;
  piece.item = large_item_.item;
  piece.offset = large_offset_;
  // Of a difference, much content may be little to send.
  const std::uint64_t left = large_item_.item.size - large_offset_;
  const std::uint64_t wanted = large_matcher_ ? 2 * kMostTargetBytes : parcel_target();
  if (large_ahead_.size() - large_at_ < std::min(left, wanted)) {
    large_ahead_.erase(large_ahead_.begin(), large_ahead_.begin() + static_cast<std::ptrdiff_t>(large_at_));
    large_at_ = 0;
    const std::uint64_t ahead = std::min<std::uint64_t>(left, large_matcher_ ? kMostParcelBytes : wanted);
    if (const auto read = read_more(*large_source_, ahead - large_ahead_.size(), large_ahead_); !read) {
      on_skipped_(large_item_, read.error());
      large_source_.reset();
      return false;
    }
  }
  const ByteView ahead = ByteView(large_ahead_).subspan(large_at_);
  piece.length = ahead.size();
  if (large_matcher_) {
    BlockDifference difference = large_matcher_->next(ahead, ahead.size() == left, kParcelGoalBytes);
    piece.form = Piece::Form::difference;
    piece.former = large_former_;
    piece.length = difference.covers;
    piece.travels = std::move(difference.steps);
  } else {
    piece.travels.assign(ahead.begin(), ahead.end());
  }
  if (piece.offset == 0) piece.content = piece.travels;  // by which kin is looked for
  large_at_ += piece.length;
  large_offset_ += piece.length;
  bytes_left_ -= std::min<std::uint64_t>(bytes_left_, piece.length);
  pieces.push_back(std::move(piece));
  return true;
}

// Their contents, the likeliest last; and how the other end finds them.
Result<Bytes> ContentSender::choose_bases(const std::vector<Piece>& pieces, std::vector<Bytes>& references) {
  std::vector<ItemId> chosen;
  for (const Piece& piece : pieces) {
    if (piece.offset > 0 || piece.form == Piece::Form::difference) continue;
    KIN_TRY_ASSIGN(const auto candidates, bases_.find(piece.content));
    std::size_t taken = 0;
    for (const ObjectId& candidate : candidates) {
      if (taken == kBasesPerPiece || chosen.size() == kBasesPerParcel) break;
      if (candidate == piece.item.object) continue;
      KIN_TRY_ASSIGN(const auto items, replica_.with_object(candidate, 4));
      for (const KnownItem& item : items) {
        if (item.item.size > kMostBaseContentBytes || peer_.sent.contains(item.id) ||
            !peer_.has_content(item, candidate))
          continue;
        if (std::find(chosen.begin(), chosen.end(), item.id) == chosen.end()) chosen.push_back(item.id);
        ++taken;
        break;
      }
    }
  }
  Bytes out;
  for (auto id = chosen.rbegin(); id != chosen.rend(); ++id) {
    KIN_TRY_ASSIGN(const auto known, replica_.find(*id));
    if (!known || known->deleted || out.size() + known->item.size > kBasesBytes) continue;
    const auto content = read_item(replica_, store_, *known);
    if (!content) continue;
    KIN_TRY_ASSIGN(Bytes reference, reference_to(replica_, *id));
    references.push_back(std::move(reference));
    const auto opened = formats_ == nullptr ? std::nullopt : open_content(*formats_, *content);
    append(out, opened ? *opened : *content);
  }
  return out;
}

std::size_t ContentSender::parcel_target() const {
  return std::clamp(static_cast<std::size_t>(ratio_ * kParcelGoalBytes), kLeastTargetBytes, kMostTargetBytes);
}

int ContentSender::level() const {
  if (speed_ == 0) return 12;
  return speed_ < kSlowBytes ? 19 : speed_ < kFastBytes ? 12 : 3;
}

// Gives what was taken from the small ones, in the order of the pieces.
Result<std::vector<ContentTask>> ContentSender::gather(std::vector<Piece>& pieces) {
  std::vector<ContentTask> taken;
  const std::size_t target = parcel_target();
  for (std::size_t bytes = 0; !small_.empty() && bytes < target && pieces.size() < kPiecesPerParcel;) {
    if (!taken.empty() && (taken.back().alone || small_.front().alone)) break;
    const ContentTask task = small_.front();
    small_.pop_front();
    KIN_TRY_ASSIGN(const bool added, add_small(task, pieces));
    if (!added) continue;
    taken.push_back(task);
    bytes += pieces.back().travels.size();
  }
  return taken;
}

// The rest waits for the next parcel. False: it is as small as it gets.
bool ContentSender::halve(std::vector<Piece>& pieces, std::vector<ContentTask>& taken) {
  if (pieces.size() > 1) {
    for (const std::size_t kept = pieces.size() / 2; pieces.size() > kept;
         pieces.pop_back(), taken.pop_back()) {
      bytes_left_ += taken.back().size;
      small_.push_front(taken.back());
    }
    return true;
  }
  Piece& piece = pieces.front();
  // The steps of a difference were bounded as they were made.
  if (!taken.empty() || piece.form == Piece::Form::difference || piece.length < 2) return false;
  const std::uint64_t dropped = piece.length / 2;
  piece.length -= dropped;
  piece.travels.resize(static_cast<std::size_t>(piece.length));
  if (piece.offset == 0) piece.content = piece.travels;
  large_at_ -= static_cast<std::size_t>(dropped);
  large_offset_ -= dropped;
  bytes_left_ += dropped;
  return true;
}

// Gives what it was made with.
Result<std::size_t> ContentSender::encode(Made& made, bool alone) {
  std::vector<Bytes> references;
  Bytes prefix;
  std::size_t window_bytes = 0;
  if (!alone) {
    KIN_TRY_ASSIGN(const Bytes bases, choose_bases(made.pieces, references));
    window_bytes = window_.size();
    const ByteView window = window_.last(window_bytes);
    prefix.assign(window.begin(), window.end());
    append(prefix, bases);
  }
  codec_->set_level(level());
  KIN_TRY_ASSIGN(made.payload, encode_parcel(made.pieces, references, window_bytes, prefix, *codec_));
  return window_bytes;
}

Result<std::optional<ContentSender::Made>> ContentSender::next() {
  sort();
  Made made;
  std::vector<ContentTask> taken;
  if (!large_source_) {
    KIN_TRY_ASSIGN(taken, gather(made.pieces));
  }
  if (taken.empty() && (large_source_ || !large_.empty())) {
    KIN_TRY(add_large(made.pieces));
  }
  if (made.pieces.empty()) return std::optional<Made>();
  const bool alone = taken.empty() ? large_task_.alone : taken.front().alone;
  std::size_t window_bytes = 0;
  for (;;) {
    KIN_TRY_ASSIGN(window_bytes, encode(made, alone));
    std::size_t plain = 0;
    for (const Piece& piece : made.pieces) plain += piece.travels.size();
    const double ratio =
        static_cast<double>(plain) / static_cast<double>(std::max<std::size_t>(made.payload.size(), 1));
    const bool is_too_large = made.payload.size() > kMostPayloadBytes;
    ratio_ = is_too_large ? ratio : 0.5 * ratio_ + 0.5 * ratio;
    if (!is_too_large || !halve(made.pieces, taken)) break;
  }
  if (taken.empty() && made.pieces.back().is_last()) large_source_.reset();
  if (window_bytes == 0) window_.clear();  // the other end does the same, so that a window can begin anew
  window_.add(made.pieces);
  return std::optional<Made>(std::move(made));
}

}  // namespace kin::sync
