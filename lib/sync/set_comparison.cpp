#include "lib/sync/set_comparison.h"

#include "lib/base/wire.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace kin::sync {
namespace {

constexpr std::size_t kFirstSymbols = 48;  // settle 20 differences without another turn
constexpr std::size_t kMostSymbolsAtOnce = 200'000;
// An honest end asks for some tens of times, and a difference of more would not fit its frame.
constexpr std::size_t kMostRounds = 256;
constexpr std::uint64_t kMostSymbols = 12'000'000;
constexpr std::size_t kReferenceBytes = 6;  // of an item in the difference

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

SetComparison::SetComparison(Replica& replica, ByteView initiator_hello, ByteView responder_hello,
                             std::uint64_t own_items, std::uint64_t peer_items)
    : replica_(replica), own_items_(own_items), peer_items_(peer_items), asked_for_(kFirstSymbols) {
  Hasher hasher;
  hasher.add(initiator_hello);
  hasher.add(responder_hello);
  const Digest digest = hasher.finish();
  WireReader in(digest);
  key_ = in.u64();
}

Result<std::vector<ItemId>> SetComparison::all_ours() {
  only_ours_.clear();
  KIN_TRY(replica_.for_each_live([&](const KnownItem& known) -> Result<void> {
    only_ours_.push_back(known.id);
    return {};
  }));
  is_known_ = true;
  return only_ours_;
}

ShortId SetComparison::short_id(const Item& item) const {
  const StateHash state = state_hash(item);
  return mix(mix(state[0] ^ key_) + state[1]);
}

Result<std::vector<CodedSymbol>> SetComparison::make(std::size_t first, std::size_t count) {
  SymbolMaker maker(key_, first, count);
  KIN_TRY(replica_.for_each_live([&](const KnownItem& known) -> Result<void> {
    maker.add(short_id(known.item));
    return {};
  }));
  return maker.symbols();
}

Result<Bytes> SetComparison::symbols(std::size_t count) {
  KIN_TRY_ASSIGN(const auto made, make(sent_, count));
  WireWriter out;
  out.varint(sent_);
  out.varint(count);
  encode_symbols(made, sent_, own_items_, out);
  sent_ += count;
  return out.take();
}

std::uint64_t SetComparison::most_symbols() const {
  return std::min(3 * (own_items_ + peer_items_) + kMostSymbolsAtOnce, kMostSymbols);
}

Result<Bytes> SetComparison::first_symbols() { return symbols(kFirstSymbols); }

Result<Bytes> SetComparison::answer_more(ByteView more) {
  WireReader in(more);
  const std::uint64_t count = in.varint_up_to(kMostSymbolsAtOnce);
  KIN_TRY(in.finish("a request for symbols"));
  // No more than could ever help.
  if (count == 0 || ++rounds_ > kMostRounds || sent_ > most_symbols())
    return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  return symbols(static_cast<std::size_t>(count));
}

Result<std::optional<Bytes>> SetComparison::take_symbols(ByteView symbols) {
  if (!decoder_) decoder_ = std::make_unique<SymbolDecoder>(key_);
  WireReader in(symbols);
  const std::uint64_t first = in.varint();
  const std::size_t count = in.count(13);
  if (first != decoder_->symbols() || count != asked_for_ || is_known_) in.fail();
  KIN_TRY(in.failed() ? in.finish("symbols") : Result<void>());
  const auto theirs = decode_symbols(first, count, peer_items_, in);
  KIN_TRY(in.finish("symbols"));
  KIN_TRY_ASSIGN(const auto ours, make(first, count));
  decoder_->add(theirs, ours);
  if (!decoder_->done()) {
    if (decoder_->failed() || ++rounds_ > kMostRounds || decoder_->symbols() > most_symbols())
      return Error(ErrorCode::corrupt, "the two stores could not be compared; another run may find a way");
    asked_for_ = std::clamp<std::size_t>(decoder_->likely_needed(), 16, kMostSymbolsAtOnce);
    WireWriter out;
    out.varint(asked_for_);
    return std::optional(out.take());
  }
  const std::unordered_set<ShortId> only_ours(decoder_->only_ours().begin(), decoder_->only_ours().end());
  KIN_TRY(replica_.for_each_live([&](const KnownItem& known) -> Result<void> {
    if (only_ours.contains(short_id(known.item))) only_ours_.push_back(known.id);
    return {};
  }));
  only_theirs_ = decoder_->only_theirs();
  std::sort(only_theirs_.begin(), only_theirs_.end());
  decoder_.reset();
  is_known_ = true;
  return std::optional<Bytes>();
}

Bytes SetComparison::difference(bool with_contents) const {
  WireWriter out;
  out.u8(with_contents ? 1 : 0);
  out.varint(only_theirs_.size());
  for (const ShortId id : only_theirs_) out.u64(id);
  out.varint(only_ours_.size());
  for (const ItemId& id : only_ours_) out.raw(ByteView(id).first(kReferenceBytes));
  return out.take();
}

Result<SetComparison::Difference> SetComparison::take_difference(ByteView difference) {
  WireReader in(difference);
  Difference out;
  out.with_contents = in.u8() != 0;
  std::unordered_set<ShortId> wanted;
  const std::size_t count = in.count(8, own_items_);
  for (std::size_t i = 0; i < count; ++i) wanted.insert(in.u64());
  const std::size_t references = in.count(kReferenceBytes, peer_items_);
  const ByteView theirs = in.raw(references * kReferenceBytes);
  KIN_TRY(in.finish("a difference"));
  KIN_TRY(replica_.for_each_live([&](const KnownItem& known) -> Result<void> {
    if (wanted.contains(short_id(known.item))) out.wanted.push_back(known.id);
    return {};
  }));
  const std::set<ItemId> different(out.wanted.begin(), out.wanted.end());
  out.told_of.resize((references + 7) / 8);
  for (std::size_t i = 0; i < references; ++i) {
    KIN_TRY_ASSIGN(const auto found,
                   replica_.find_by_prefix(theirs.subspan(i * kReferenceBytes, kReferenceBytes), 4));
    for (const KnownItem& known : found) {
      if (!known.deleted && !different.contains(known.id)) continue;
      (known.deleted ? out.deleted : out.elsewise).push_back(known.id);
      out.told_of[i / 8] |= static_cast<std::uint8_t>(1 << i % 8);
    }
  }
  return out;
}

Result<SetComparison::Elsewise> SetComparison::take_elsewise(ByteView elsewise) const {
  const std::size_t count = only_ours_.size();
  const bool fits = elsewise.size() == (count + 7) / 8;
  if (!fits || (count % 8 != 0 && elsewise.back() >> count % 8 != 0))
    return Error(ErrorCode::corrupt, "the other end tells of other items than those that differ");
  Elsewise out;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_told_of = (elsewise[i / 8] >> i % 8 & 1) != 0;
    (is_told_of ? out.told_of : out.missing).push_back(only_ours_[i]);
  }
  return out;
}

}  // namespace kin::sync
