#include "lib/engine/trial.h"

#include <algorithm>

namespace kin {
namespace {

// A delta below this part of the content leaves little to gain from another base.
constexpr std::size_t kGoodEnough = 32;
// And below this one, hardly any content is smaller compressed alone.
constexpr std::size_t kBetterThanWhole = 8;

}  // namespace

std::shared_ptr<const Bytes> Trial::base(const ObjectId& id) {
  if (auto content = recent_.find(id)) return content;
  auto content = store_.load(id);
  return content ? *std::move(content) : nullptr;
}

void Trial::measure(TriedObject& tried) {
  const EncoderPool::Lease encoder = encoders_.take();
  tried.alone_bytes = encoder->compress(*tried.content, kAloneLevel).payload.size();
  if (!meter_->compares() || tried.deltas.empty()) return;
  const DeltaTrial& best = *std::min_element(tried.deltas.begin(), tried.deltas.end(),
                                             [](const DeltaTrial& a, const DeltaTrial& b) {
                                               return a.encoding.payload.size() < b.encoding.payload.size();
                                             });
  tried.zstd_bytes = encoder->delta_bytes(CodecId::zstd, *best.base_content, *tried.content);
  tried.xdelta3_bytes = encoder->delta_bytes(CodecId::xdelta3, *best.base_content, *tried.content);
}

TriedObject Trial::run(OfferedObject offered) {
  TriedObject out{std::move(offered.object), std::move(offered.content), {}, {}};
  out.has_kin = offered.has_kin;
  out.is_long = offered.is_long;
  const ByteView content = *out.content;
  std::size_t best = content.size();
  for (const auto& [candidate, close, matches] : offered.candidates) {
    if (out.deltas.size() == most_trials_ || best <= content.size() / kGoodEnough) break;
    const std::shared_ptr<const Bytes> base_content = base(candidate);
    if (!base_content || base_content->empty()) continue;
    auto encoding = encoders_.take()->compress_delta(*base_content, content, close);
    if (!encoding) continue;
    best = std::min(best, encoding->payload.size());
    out.deltas.push_back({candidate, base_content, *std::move(encoding), matches});
  }
  if (content.size() >= kSoloBytes && best > content.size() / kBetterThanWhole)
    out.whole = encoders_.take()->compress_whole(content, out.is_long);
  if (meter_ != nullptr && !is_metadata(out.object.kind)) measure(out);
  return out;
}

}  // namespace kin
