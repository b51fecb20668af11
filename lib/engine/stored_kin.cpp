#include "lib/engine/stored_kin.h"

#include "lib/engine/segmenter.h"

#include <algorithm>
#include <unordered_map>

namespace kin {
namespace {

// Read in one sorted sweep, as a backup does.
constexpr std::size_t kKinBatch = 128;

}  // namespace

Result<StoredKin> find_stored_kin(BlockStore& store, ContentReader& content, std::size_t most,
                                  const std::stop_token& stop) {
  StoredKin out;
  std::unordered_map<ObjectId, StoredKin::Found, ObjectIdHash> found;
  std::vector<std::pair<ObjectId, Sketch>> batch;
  const auto look = [&]() -> Result<void> {
    if (stop.stop_requested()) return interrupted();
    std::vector<const Sketch*> sketches;
    sketches.reserve(batch.size());
    for (const auto& [id, sketch] : batch) sketches.push_back(&sketch);
    KIN_TRY(store.features().prefetch(sketches));
    for (const auto& [id, sketch] : batch) {
      KIN_TRY_ASSIGN(const std::vector<Candidate> candidates, store.features().candidates(sketch, most));
      KIN_TRY_ASSIGN(const bool stored, store.contains(id));
      if (stored) {
        StoredKin::Found& itself = found.try_emplace(id, StoredKin::Found{id, 0, true}).first->second;
        itself.is_part = true;
        itself.matches += sketch.size();
      }
      for (const Candidate& candidate : candidates)
        if (candidate.id != id || !stored)
          found.try_emplace(candidate.id, StoredKin::Found{candidate.id, 0, false}).first->second.matches +=
              candidate.matches;
    }
    batch.clear();
    return {};
  };
  std::uint64_t offset = 0;
  Result<void> looked;
  auto cut = Segmenter(store).run(
      [&](std::span<std::uint8_t> into) -> Result<std::size_t> {
        KIN_TRY_ASSIGN(const std::size_t size, content.read_at(offset, into));
        offset += size;
        return size;
      },
      UINT64_MAX,
      [&](NewObject object) {
        ++out.objects;
        out.features += object.sketch.size();
        out.only = out.objects == 1 ? std::move(object.bytes) : Bytes();
        batch.emplace_back(object.id, std::move(object.sketch));
        if (batch.size() == kKinBatch) looked = look();
        return looked.has_value();
      });
  KIN_TRY(std::move(looked));
  KIN_TRY(std::move(cut));
  KIN_TRY(look());
  for (const auto& [id, kin] : found) out.found.push_back(kin);
  std::sort(out.found.begin(), out.found.end(), [](const auto& a, const auto& b) {
    if (a.is_part != b.is_part) return a.is_part;
    return a.matches != b.matches ? a.matches > b.matches : a.id < b.id;
  });
  if (out.found.size() > most) out.found.resize(most);
  return out;
}

}  // namespace kin
