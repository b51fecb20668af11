#include "lib/sync/parcel_reader.h"

#include "lib/sync/opened_content.h"

namespace kin::sync {
namespace {

constexpr std::size_t kMostPrefixBytes = kMostBaseBytes + kWindowBytes;

Error base_is_gone() { return Error(ErrorCode::wrong_base, "a base is gone"); }

}  // namespace

ParcelReader::ParcelReader(Replica& replica, SyncStore& store, const ContentFiles& trash,
                           const Formats* formats, const PeerView& peer)
    : replica_(replica),
      store_(store),
      trash_(trash),
      formats_(formats),
      peer_(peer),
      codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1)) {}

Result<Bytes> ParcelReader::prefix_of(const ParcelHead& head) {
  if (head.window_bytes > window_.size() || (!window_is_whole_ && head.window_bytes > 0))
    return base_is_gone();
  const ByteView window = window_.last(head.window_bytes);
  Bytes out(window.begin(), window.end());
  for (const Bytes& base : head.bases) {
    KIN_TRY_ASSIGN(const auto known, resolve(replica_, peer_, base));
    if (!known || known->deleted || out.size() + known->item.size > kMostPrefixBytes) return base_is_gone();
    const auto content = read_item(replica_, store_, *known);
    if (!content) return base_is_gone();
    const auto opened = formats_ == nullptr ? std::nullopt : open_content(*formats_, *content);
    append(out, opened ? *opened : *content);
    if (out.size() > kMostPrefixBytes) return base_is_gone();
  }
  return out;
}

Result<ParcelReader::Contents> ParcelReader::read(ByteView payload) {
  KIN_TRY_ASSIGN(const ParcelHead head, decode_parcel_head(payload));
  bool has_prefix = false;
  auto pieces = [&]() -> Result<std::vector<Piece>> {
    KIN_TRY_ASSIGN(const Bytes prefix, prefix_of(head));
    has_prefix = !prefix.empty();
    return decode_parcel(head, prefix, *codec_, formats_);
  }();
  if (!pieces) {
    window_is_whole_ = false;
    return std::move(pieces).error();
  }
  if (head.window_bytes == 0) {  // the sender begins a new one
    window_.clear();
    window_is_whole_ = true;
  }
  window_.add(*pieces);
  Contents out;
  for (Piece& piece : *pieces) {
    if (piece.form == Piece::Form::difference) {
      auto content = play(piece);
      // With another prefix than the sender's, steps may be nonsense.
      if (!content && content.error().code() == ErrorCode::corrupt && !has_prefix)
        return std::move(content).error();
      if (!content || !take_content(piece, *std::move(content))) {
        out.lost.push_back(std::move(piece));
        continue;
      }
    }
    out.pieces.push_back(std::move(piece));
  }
  return out;
}

// In its place, or where it was replaced meanwhile, in the trash.
Result<std::unique_ptr<ByteSource>> ParcelReader::open_former(const Piece& piece) {
  KIN_TRY_ASSIGN(const auto own, replica_.find(item_id(piece.item)));
  if (!own || own->deleted || own->item.type != ItemType::file || !opened_.insert(own->id).second)
    return base_is_gone();
  if (is_former(piece, own->item.object)) return open_item(replica_, store_, *own);
  for (const PastState& past : own->past)
    if (past.state && is_former(piece, past.state->object) && trash_.has(past.state->object))
      return trash_.open(past.state->object);
  return base_is_gone();
}

Result<Bytes> ParcelReader::play(const Piece& piece) {
  if (!patcher_ || patched_ != piece.stamp) {
    patcher_.reset();
    KIN_TRY_ASSIGN(auto former, open_former(piece));
    patcher_.emplace(std::move(former));
    patched_ = piece.stamp;
  }
  auto content = patcher_->play(piece.travels, piece.length);
  if (!content || piece.is_last()) patcher_.reset();
  return content;
}

}  // namespace kin::sync
