#include "lib/container/recipe.h"

#include "lib/base/check.h"
#include "lib/object/content.h"

#include <algorithm>
#include <utility>

namespace kin {
namespace {

constexpr std::uint8_t kRecipeVersion = 1;
constexpr std::size_t kMostExtentBytes = 1 + 10 + 32;
// A part's bounds, added up.
constexpr std::size_t kMostPartBytes =
    kMostLiteral + kMostMemberName + kMostInlineCorrections + 2 * kInlineExtents * kMostExtentBytes + 64;

enum PartKind : std::uint8_t { literal_part = 1, member_part = 2, end_part = 3 };
enum RecipeForm : std::uint8_t { inline_recipe = 0, long_recipe = 1 };
enum CorrectionsForm : std::uint8_t { inline_form = 0, extents_form = 1 };

Error damaged() { return Error(ErrorCode::corrupt, "the recipe of a container is damaged"); }

void encode_extents(const std::vector<Extent>& extents, WireWriter& out) {
  KIN_CHECK(extents.size() <= kInlineExtents);
  out.varint(extents.size());
  for (const Extent& extent : extents) encode_extent(extent, out);
}

std::vector<Extent> decode_extents(WireReader& in) {
  const std::size_t count = in.count(2);
  if (count > kInlineExtents) in.fail();
  std::vector<Extent> extents(in.failed() ? 0 : count);
  for (Extent& extent : extents) extent = decode_extent(in);
  return extents;
}

}  // namespace

void encode_recipe_start(std::string_view type, WireWriter& out) {
  KIN_CHECK(type.size() <= kMostTypeName);
  out.u8(kRecipeVersion);
  out.text(type);
}

void encode_recipe_end(const RecipeEnd& end, WireWriter& out) {
  out.u8(end_part);
  out.varint(end.size);
  out.raw(end.digest);
}

void encode_recipe_part(const RecipePart& part, WireWriter& out) {
  if (part.is_literal()) {
    KIN_CHECK(part.literal.size() <= kMostLiteral);
    out.u8(literal_part);
    out.blob(part.literal);
    return;
  }
  out.u8(member_part);
  out.u8(static_cast<std::uint8_t>(part.coding));
  out.text(std::string_view(part.name).substr(0, kMostMemberName));
  encode_extents(part.content, out);
  out.u8(part.corrections.empty() ? inline_form : extents_form);
  if (!part.corrections.empty()) return encode_extents(part.corrections, out);
  KIN_CHECK(part.inline_corrections.size() <= kMostInlineCorrections);
  out.blob(part.inline_corrections);
}

Bytes encode_recipe_object(const RecipeObject& object) {
  if (object.extents.empty()) {
    Bytes out(1 + object.bytes.size(), inline_recipe);
    std::copy(object.bytes.begin(), object.bytes.end(), out.begin() + 1);
    return out;
  }
  WireWriter out;
  out.u8(long_recipe);
  encode_extents(object.extents, out);
  return out.take();
}

Result<RecipeObject> load_recipe(ObjectReader& reader, const Extent& container) {
  KIN_TRY_ASSIGN(const auto bytes, reader.load(container.id));
  WireReader in(*bytes);
  RecipeObject out;
  const std::uint8_t form = in.u8();
  if (!bytes->empty() && form > long_recipe)
    return Error(ErrorCode::unsupported, "recipe " + container.id.short_hex() + " was made by a newer kin");
  std::uint64_t left = most_recipe_bytes(container.size);
  if (form == inline_recipe) {
    const ByteView rest = in.raw(in.left());
    append(out.bytes, rest);
    if (rest.size() > left) in.fail();
  } else {
    out.extents = decode_extents(in);
    if (out.extents.empty()) in.fail();
    for (const Extent& extent : out.extents) {
      if (extent.size > left || (extent.kind != Extent::Kind::data && extent.kind != Extent::Kind::list))
        in.fail();
      left -= std::min(left, extent.size);
    }
  }
  KIN_TRY(in.finish("recipe " + container.id.short_hex()));
  return out;
}

Result<std::optional<RecipePart>> RecipeReader::next() {
  KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(kMostPartBytes));
  if (!started_ && !bytes.empty() && bytes[0] > kRecipeVersion)
    return Error(ErrorCode::unsupported, "the container was taken apart by a newer kin");
  WireReader in(bytes);
  if (!std::exchange(started_, true)) {
    if (in.u8() != kRecipeVersion) in.fail();
    type_ = in.text();
    if (type_.size() > kMostTypeName) in.fail();
  }
  RecipePart part;
  const std::uint8_t kind = in.u8();
  if (kind == literal_part) {
    const ByteView literal = in.blob();
    if (literal.empty() || literal.size() > kMostLiteral) in.fail();
    append(part.literal, literal);
  } else if (kind == member_part) {
    part.coding = static_cast<CodingId>(in.u8());
    part.name = in.text();
    if (part.name.size() > kMostMemberName) in.fail();
    part.content = decode_extents(in);
    // Each part gives bytes: so a container's size bounds the steps of reading it.
    if (part.coding == CodingId::none && part.content.empty()) in.fail();
    const std::uint8_t form = in.u8();
    if (form > extents_form) in.fail();
    if (form == extents_form) {
      part.corrections = decode_extents(in);
      if (part.corrections.empty()) in.fail();
    } else {
      const ByteView corrections = in.blob();
      if (corrections.size() > kMostInlineCorrections) in.fail();
      append(part.inline_corrections, corrections);
    }
  } else if (kind == end_part) {
    end_.size = in.varint();
    end_.digest = in.array<32>();
    if (in.left() > 0) in.fail();
  } else {
    in.fail();
  }
  if (in.failed()) return damaged();
  in_.skip(in.position());
  if (kind == end_part) return std::optional<RecipePart>();
  return std::optional(std::move(part));
}

}  // namespace kin
