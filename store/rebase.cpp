#include "store/rebase.h"

#include "lib/engine/block_assembler.h"

#include <algorithm>

namespace kin::store {
namespace {

// Of the next best kin, so many are tried.
constexpr std::size_t kMostKin = 3;
// To write deltas anew for less than this part of their base is to write for nothing.
constexpr double kLeastGain = 0.1;

std::uint64_t stored_bytes(const EncodedBlock& block) {
  return encode_block_header(block.header).size() + block.payload.size() + kRecordOverheadBytes;
}

}  // namespace

std::uint64_t Rebase::bytes_of(const BlockRef& at) const {
  const auto choice = choices_.find(at);
  return choice == choices_.end() ? at.stored_size : choice->second.bytes;
}

Result<void> Rebase::plan(const std::stop_token& stop) {
  std::vector<BlockRef> order;
  for (BlockUse::BaseOnly& base : use_.bases_only()) {
    order.push_back(base.at.block);
    report_.kept_bytes += base.at.block.stored_size;
    bases_[base.at.block] = {base.at, {base.leaning.begin(), base.leaning.end()}};
  }
  report_.kept = order.size();
  if (!order.empty()) KIN_TRY(repository_.fill_features(stop));
  std::uint64_t done = 0;
  for (const BlockRef& base : order) {
    on_progress_("looking for other bases", done++, order.size());
    KIN_TRY(try_to_free(base, stop));
  }
  for (const auto& [at, choice] : choices_) {
    ++report_.written;
    report_.old_bytes += at.stored_size;
    report_.written_bytes += choice.bytes;
  }
  return {};
}

Result<void> Rebase::try_to_free(const BlockRef& at, const std::stop_token& stop) {
  const Base& base = bases_.at(at);
  const auto header = repository_.block_header(at);
  if (!header && is_damage(header.error())) return {};
  if (!header) return header.error();
  std::map<BlockRef, Choice> better;
  double left = static_cast<double>(at.stored_size) * (1 - kLeastGain);
  for (const BlockRef& delta : base.leaning) {
    if (stop.stop_requested()) return interrupted();
    auto choice = best_choice(delta, base, header->base);
    // What cannot be read stays what it is, and where it is.
    if (!choice && is_damage(choice.error())) return {};
    if (!choice) return std::move(choice).error();
    left -= static_cast<double>(choice->bytes) - static_cast<double>(bytes_of(delta));
    if (left < 0) return {};
    better.emplace(delta, *std::move(choice));
  }
  // The base itself may have leaned on one that is there for it.
  if (Base* const below = find_base(header->base)) below->leaning.erase(at);
  for (auto& [delta, choice] : better) {
    if (Base* const below = find_base(choice.base)) below->leaning.insert(delta);
    choices_.insert_or_assign(delta, std::move(choice));
  }
  choices_.erase(at);  // it need not be written to be removed
  freed_packs_.insert(at.pack);
  bases_.erase(at);
  ++report_.freed;
  report_.freed_bytes += at.stored_size;
  return {};
}

// The one that is there for others alone and has this object, if any does.
Rebase::Base* Rebase::find_base(const std::optional<ObjectId>& id) {
  const auto standing = id ? use_.standing(*id) : std::nullopt;
  const auto at = standing ? bases_.find(standing->block) : bases_.end();
  return at == bases_.end() ? nullptr : &at->second;
}

Result<Rebase::Delta> Rebase::load(const BlockRef& at) {
  Delta out;
  KIN_TRY_ASSIGN(out.header, repository_.block_header(at));
  KIN_TRY_ASSIGN(const auto content, repository_.load_block(at));
  for (const BlockObject& object : out.header.objects) {
    const std::optional<ByteView> bytes = content->find(object.id);
    if (!bytes) return Error(ErrorCode::corrupt, "object " + object.id.short_hex() + " is not in its block");
    // One that is of all the block's content stands beside the objects that this is made of.
    if (object.kind != ObjectKind::group) append(out.content, *bytes);
  }
  return out;
}

Result<std::vector<ObjectId>> Rebase::bases_for(const Delta& delta, const BlockRef& at, const Base& base,
                                                const std::optional<ObjectId>& below) {
  std::vector<ObjectId> out;
  if (below) out.push_back(*below);
  for (const BlockObject& object : delta.header.objects) {
    if (object.features.empty()) continue;
    const Sketch* const sketch = &object.features;
    KIN_TRY(repository_.features().prefetch(std::span(&sketch, 1)));
    KIN_TRY_ASSIGN(const std::vector<Candidate> found,
                   repository_.features().candidates(*sketch, 4 * kMostKin));
    std::size_t taken = 0;
    for (const Candidate& candidate : found) {
      const auto standing = use_.standing(candidate.id);
      if (!standing || !standing->is_named || standing->depth > base.at.depth || standing->block == at)
        continue;
      const auto chain = repository_.chain(candidate.id);
      if (!chain || chain->bytes + delta.content.size() > BlockAssembler::kMostChainBytes) continue;
      if (std::find(out.begin(), out.end(), candidate.id) == out.end()) out.push_back(candidate.id);
      if (++taken == kMostKin) break;
    }
  }
  return out;
}

EncodedBlock Rebase::encode(const Delta& delta, const std::optional<ObjectId>& base, ByteView base_content) {
  std::optional<Encoding> encoding;
  if (base) encoding = encoder_.compress_delta(base_content, delta.content, true);
  const bool is_delta = encoding.has_value();
  if (!encoding) encoding = encoder_.compress_whole(delta.content);
  return encoder_.keep(delta.header.objects, delta.content, *std::move(encoding),
                       is_delta ? base : std::nullopt, is_delta ? base_content : ByteView());
}

Result<Rebase::Choice> Rebase::best_choice(const BlockRef& at, const Base& base,
                                           const std::optional<ObjectId>& below) {
  KIN_TRY_ASSIGN(const Delta delta, load(at));
  Choice out{std::nullopt, stored_bytes(encode(delta, std::nullopt, {}))};
  KIN_TRY_ASSIGN(const std::vector<ObjectId> bases, bases_for(delta, at, base, below));
  for (const ObjectId& id : bases) {
    const auto content = repository_.load(id);
    if (!content) continue;  // there are others
    const EncodedBlock block = encode(delta, id, **content);
    if (const std::uint64_t bytes = stored_bytes(block); block.header.base && bytes < out.bytes)
      out = {id, bytes};
  }
  return out;
}

Result<void> Rebase::carry_out(const std::stop_token& stop) {
  std::set<BlockRef> replaced;
  report_.written_bytes = 0;
  for (const auto& [at, choice] : choices_) {
    on_progress_("writing deltas anew", replaced.size(), choices_.size());
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const Delta delta, load(at));
    std::shared_ptr<const Bytes> base;
    if (choice.base) {
      KIN_TRY_ASSIGN(base, repository_.load(*choice.base));
    }
    KIN_TRY_ASSIGN(const std::uint64_t bytes,
                   repository_.append(encode(delta, choice.base, base ? ByteView(*base) : ByteView())));
    report_.written_bytes += bytes;
    replaced.insert(at);
  }
  KIN_TRY(repository_.flush());
  use_.forsake(replaced);
  return {};
}

}  // namespace kin::store
