// How a session finds out what differs where history does not tell.

#include "lib/sync/session.h"

namespace kin::sync {
namespace {

constexpr std::size_t kNamesFrameBytes = 256 << 10;

}  // namespace

// One of the two has no items: then both know the difference.
Result<void> Session::begin_plain() {
  SetComparison::Difference difference;
  difference.with_contents = sends();
  KIN_TRY_ASSIGN(difference.wanted, comparison_->all_ours());
  if (!options_.is_initiator) return answer_difference(difference);
  peer_.different.insert(difference.wanted.begin(), difference.wanted.end());
  exchanges_ = true;
  if (options_.direction != Direction::both) {
    rest_ = std::move(difference.wanted);
    return {};
  }
  sending_ = true;
  return outgoing_->add(difference.wanted);
}

Result<void> Session::on_symbols(ByteView payload) {
  if (!options_.is_initiator || !comparison_ || exchanges_)
    return Error(ErrorCode::corrupt, "the other end sent symbols that nobody asked for");
  KIN_TRY_ASSIGN(const auto more, comparison_->take_symbols(payload));
  if (more) {
    put(FrameType::more, *more);
    return {};
  }
  // It asks for what only the other end has, and says what it has itself that is different, so that of two
  // states of one message only flags travel.
  peer_.different.insert(comparison_->only_ours().begin(), comparison_->only_ours().end());
  put(FrameType::difference, comparison_->difference(receives()));
  if (options_.direction == Direction::both) return {};
  rest_ = comparison_->only_ours();
  exchanges_ = true;
  return {};
}

// From here on both ends send. Of what both have, the responder tells first.
Result<void> Session::on_elsewise(ByteView payload) {
  if (!options_.is_initiator || !comparison_ || !comparison_->is_known() || exchanges_)
    return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  KIN_TRY_ASSIGN(auto elsewise, comparison_->take_elsewise(payload));
  rest_ = std::move(elsewise.told_of);
  sending_ = exchanges_ = true;
  return outgoing_->add(elsewise.missing);
}

Result<void> Session::on_more(ByteView payload) {
  if (options_.is_initiator || !comparison_ || exchanges_ || !out_.empty())  // one at a time
    return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  KIN_TRY_ASSIGN(const Bytes symbols, comparison_->answer_more(payload));
  put(FrameType::symbols, symbols);
  return {};
}

Result<void> Session::on_difference(ByteView payload) {
  if (options_.is_initiator || !comparison_ || exchanges_)
    return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  KIN_TRY_ASSIGN(const auto difference, comparison_->take_difference(payload));
  if (options_.direction == Direction::both) put(FrameType::elsewise, difference.told_of);
  return answer_difference(difference);
}

Result<void> Session::answer_difference(const SetComparison::Difference& difference) {
  peer_.different.insert(difference.wanted.begin(), difference.wanted.end());
  peer_.elsewise.insert(difference.elsewise.begin(), difference.elsewise.end());
  sending_ = exchanges_ = true;
  if (difference.with_contents) {
    KIN_TRY(outgoing_->add(difference.wanted));
    // Where the initiator has seen nothing of it, it decides that they stay.
    if (peer_.history_counts)
      for (const ItemId& id : difference.deleted) KIN_TRY(outgoing_->add_merged(id, {}));
    return {};
  }
  std::vector<Record> names;
  std::size_t bytes = 0;
  for (const ItemId& id : difference.wanted) {
    KIN_TRY_ASSIGN(const auto known, parts_.replica.find(id));
    if (known) names.push_back({Record::Kind::announce, known->stamp, {}, {}, {}, known->item});
    if (known) bytes += record_bytes(names.back());
    if (bytes < kNamesFrameBytes && id != difference.wanted.back()) continue;
    put(FrameType::records, encode_records(names));
    names.clear();
    bytes = 0;
  }
  return {};
}

// One direction, to the other end: an item of its own that is not as it is here, or is not here at all.
Result<void> Session::on_announced(const Item& item, const Stamp& stamp) {
  const ItemId id = item_id(item);
  dealt_with_.insert(id);
  if (options_.direction != Direction::mirror) return {};
  KIN_TRY_ASSIGN(auto known, parts_.replica.find(id));
  const bool is_here = known && !known->deleted;
  if (!is_here && options_.dry_run) {
    if (observer_.on_sent) observer_.on_sent({Record::Kind::remove, stamp, {}, {}, {}, item});
    return {};
  }
  if (!is_here) {
    KnownItem gone = known ? *std::move(known) : KnownItem{};
    gone.id = id;
    gone.item = item;
    gone.deleted = true;
    gone.stamp = parts_.replica.next_stamp();
    KIN_TRY(parts_.replica.set(std::move(gone)));
  }
  return outgoing_->add_merged(id, stamp);
}

}  // namespace kin::sync
