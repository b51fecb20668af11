#include "cmd/stats_details.h"

#include "lib/base/text.h"

#include <algorithm>

namespace kin::cmd {
namespace {

constexpr std::size_t kShownTypes = 10;
constexpr std::size_t kMostSuffixBytes = 12;
// Names may be anything; no tree of ordinary files comes near.
constexpr std::size_t kMostTypes = 65536;
constexpr const char* kOtherTypes = "(others)";

void print_row(Context& context, std::string_view name, std::string_view blocks, std::string_view objects,
               std::string_view content, std::string_view stored) {
  // A long name takes the room of a column that is not used.
  const std::string left = blocks.empty() ? std::string(name) : fmt::format("{:<18}{:>11}", name, blocks);
  context.print_always(fmt::format("{:<29} {:>13} {:>15} {:>15}", left, objects, content, stored));
}

}  // namespace

std::string suffix_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size() ||
      name.size() - dot > kMostSuffixBytes)
    return "(no suffix)";
  std::string out(name.substr(dot));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

Result<void> StorageDetails::add(const ObjectId& id, const std::string& type) {
  KIN_TRY_ASSIGN(const std::optional<store::Location> location, repository_.find_location(id));
  std::optional<unsigned> depth;
  if (location) {
    const std::uint64_t share = store::share_of(location->size, location->range.size, location->content_size);
    const bool fits = types_.size() < kMostTypes || types_.contains(type);
    types_[fits ? type : kOtherTypes].add(location->size, share);
    KIN_TRY_ASSIGN(depth, depth_of(id, *location));
    if (depth) depths_[*depth].add(location->size, share);
  }
  if (!depth) ++missing_;
  return {};
}

Result<std::optional<unsigned>> StorageDetails::depth_of(const ObjectId& id,
                                                         const store::Location& location) {
  std::vector<ShortId> deltas;  // from the object down, to one whose depth is known
  unsigned depth = 0;
  ObjectId at = id;
  store::Location where = location;
  while (where.base) {
    if (const auto known = known_depths_.find(ShortId(at.bytes)); known != known_depths_.end()) {
      depth = known->second;
      break;
    }
    deltas.push_back(ShortId(at.bytes));
    at = *where.base;
    KIN_TRY_ASSIGN(const std::optional<store::Location> below, repository_.find_location(at));
    if (!below || deltas.size() > store::kMostChain) return std::optional<unsigned>();
    where = *below;
    bases_.try_emplace(ShortId(at.bytes), where.size,
                       store::share_of(where.size, where.range.size, where.content_size));
  }
  for (auto delta = deltas.rbegin(); delta != deltas.rend(); ++delta)
    known_depths_.emplace(*delta, static_cast<std::uint8_t>(++depth));
  return std::optional<unsigned>(depth);
}

StorageDetails::Tally StorageDetails::kept_as_bases(const Distinct& reached) const {
  Tally out;
  for (const auto& [id, sizes] : bases_)
    if (!reached.contains(id)) out.add(sizes.first, sizes.second);
  return out;
}

std::vector<StorageDetails::NamedTally> StorageDetails::largest_types() const {
  std::vector<NamedTally> out;
  for (const auto& [name, tally] : types_)
    if (name != kOtherTypes) out.push_back({name, tally});
  std::sort(out.begin(), out.end(), [](const NamedTally& a, const NamedTally& b) {
    return a.tally.stored != b.tally.stored ? a.tally.stored > b.tally.stored : a.name < b.name;
  });
  NamedTally others{kOtherTypes, {}};
  if (const auto at = types_.find(kOtherTypes); at != types_.end()) others.tally = at->second;
  for (; out.size() > kShownTypes; out.pop_back()) {
    others.tally.objects += out.back().tally.objects;
    others.tally.bytes += out.back().tally.bytes;
    others.tally.stored += out.back().tally.stored;
  }
  if (others.tally.objects > 0) out.push_back(std::move(others));
  return out;
}

void StorageDetails::print(Context& context, const Distinct& reached) const {
  context.print_always("");
  print_row(context, "By type of file", "", "objects", "content", "stored, about");
  for (const NamedTally& type : largest_types())
    print_row(context, printable(type.name), "", grouped(type.tally.objects), human_bytes(type.tally.bytes),
              human_bytes(type.tally.stored));
  context.print_always("");
  print_row(context, "By chain", "", "objects", "content", "stored, about");
  for (const auto& [depth, tally] : depths_)
    print_row(context, depth == 0 ? "no base" : fmt::format("{} delta{}", depth, depth == 1 ? "" : "s"), "",
              grouped(tally.objects), human_bytes(tally.bytes), human_bytes(tally.stored));
  context.print_always("");
  const Tally bases = kept_as_bases(reached);
  context.print_always(
      bases.objects == 0
          ? "Kept as bases:    nothing; all bases are objects of these snapshots"
          : fmt::format("Kept as bases:    {} object{} that none of these snapshots has, {} in about {}",
                        grouped(bases.objects), bases.objects == 1 ? "" : "s", human_bytes(bases.bytes),
                        human_bytes(bases.stored)));
  if (missing_ > 0)
    context.warn(
        fmt::format("{} object{} missing from the repository, or a base of theirs (kin check tells more)",
                    grouped(missing_), missing_ == 1 ? " is" : "s are"));
}

Json StorageDetails::json(const Distinct& reached) const {
  const auto tally_json = [](const Tally& tally) {
    return Json{{"objects", tally.objects}, {"size", tally.bytes}, {"stored_size", tally.stored}};
  };
  Json types = Json::array(), chains = Json::array();
  for (const NamedTally& type : largest_types()) {
    Json entry = tally_json(type.tally);
    set_path(entry, "type", type.name);
    types.push_back(std::move(entry));
  }
  for (const auto& [depth, tally] : depths_) {
    Json entry = tally_json(tally);
    entry["depth"] = depth;
    chains.push_back(std::move(entry));
  }
  return {{"types", std::move(types)},
          {"chains", std::move(chains)},
          {"kept_as_bases", tally_json(kept_as_bases(reached))},
          {"missing_objects", missing_}};
}

void print_encodings(Context& context, const store::EncodingTable& table) {
  context.print_always("");
  print_row(context, "By encoding", "blocks", "objects", "content", "stored");
  for (const auto& [key, totals] : table)
    print_row(context, fmt::format("{}, {}", name_of(key.second), store::codec_name(key.first)),
              grouped(totals.blocks), grouped(totals.objects), human_bytes(totals.content_bytes),
              human_bytes(totals.stored_bytes));
}

Json encodings_json(const store::EncodingTable& table) {
  Json out = Json::array();
  for (const auto& [key, totals] : table)
    out.push_back({{"encoding", store::codec_name(key.first)},
                   {"form", name_of(key.second)},
                   {"blocks", totals.blocks},
                   {"objects", totals.objects},
                   {"size", totals.content_bytes},
                   {"stored_size", totals.stored_bytes}});
  return out;
}

}  // namespace kin::cmd
