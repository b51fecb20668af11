#include "lib/object/content.h"

#include <algorithm>

namespace kin {
namespace {

// A list of lists of lists ... of 4,096 each: 8 levels are more than any file needs, and end a loop in a
// forged list.
constexpr int kMostListLevels = 8;
constexpr std::uint8_t kListVersion = 1;

Result<std::vector<Extent>> decode_list(ByteView bytes, const Extent& list) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kListVersion)
    return Error(ErrorCode::unsupported, "extent list " + list.id.short_hex() + " was made by a newer kin");
  if (in.u8() != kListVersion) in.fail();
  std::vector<Extent> extents(in.count(2));
  std::uint64_t left = list.size;
  for (Extent& extent : extents) {
    extent = decode_extent(in);
    if (extent.size > left) in.fail();
    left -= extent.size;
  }
  if (left != 0) in.fail();
  KIN_TRY(in.finish("extent list " + list.id.short_hex()));
  return extents;
}

Result<void> visit_extents(ObjectReader& reader, const std::vector<Extent>& extents, std::uint64_t offset,
                           int level, const VisitExtent& visit, const VisitList& visit_list) {
  if (level > kMostListLevels) return Error(ErrorCode::corrupt, "extent lists are nested too deep");
  for (const Extent& extent : extents) {
    if (extent.kind != Extent::Kind::list) {
      KIN_TRY(visit(extent, offset));
    } else if (!visit_list || visit_list(extent.id)) {
      KIN_TRY_ASSIGN(const std::vector<Extent> inner, load_list(reader, extent));
      KIN_TRY(visit_extents(reader, inner, offset, level + 1, visit, visit_list));
    }
    offset += extent.size;
  }
  return {};
}

}  // namespace

Result<std::vector<Extent>> fold_extents(std::vector<Extent> extents, const StoreObject& store) {
  while (extents.size() > kInlineExtents) {
    std::vector<Extent> lists;
    for (std::span<const Extent> rest = extents; !rest.empty();) {
      const std::span<const Extent> part = rest.first(std::min(rest.size(), kListExtents));
      rest = rest.subspan(part.size());
      Extent list{Extent::Kind::list, 0, {}};
      for (const Extent& extent : part) list.size += extent.size;
      KIN_TRY_ASSIGN(list.id, store(ObjectKind::list, encode_list(part)));
      lists.push_back(list);
    }
    extents = std::move(lists);
  }
  return extents;
}

Bytes encode_list(std::span<const Extent> extents) {
  WireWriter out;
  out.u8(kListVersion);
  out.varint(extents.size());
  for (const Extent& extent : extents) encode_extent(extent, out);
  return out.take();
}

Result<std::vector<Extent>> load_list(ObjectReader& reader, const Extent& list) {
  KIN_TRY_ASSIGN(const auto bytes, reader.load(list.id));
  return decode_list(*bytes, list);
}

Result<void> for_each_extent(ObjectReader& reader, const std::vector<Extent>& extents,
                             const VisitExtent& visit, const VisitList& visit_list) {
  return visit_extents(reader, extents, 0, 0, visit, visit_list);
}

}  // namespace kin
