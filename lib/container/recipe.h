// Recipe: how a container goes together again. A version, the type of the container, then its parts in order:
//
//     1  literal: blob
//     2  member: coding(1)  name  content  corrections
//     3  end: size(varint)  digest(32), of the whole container
//
// Content and corrections are extents, as a node holds them; corrections may be a blob instead, if they are
// short. docs/format.md has the bytes. A recipe of millions of members is long, so it is written and read as
// a stream, and stored in segments like any content.
#pragma once

#include "lib/base/hash.h"
#include "lib/base/wire.h"
#include "lib/container/container_format.h"
#include "lib/object/node.h"
#include "lib/object/object_store.h"

#include <optional>
#include <string>
#include <vector>

namespace kin {

inline constexpr std::size_t kMostInlineCorrections = 4096;
inline constexpr std::size_t kMostLiteral = 64 << 10;
inline constexpr std::size_t kMostMemberName = 4096;
inline constexpr std::size_t kMostTypeName = 32;

struct RecipePart {
  Bytes literal;  // all there is, if not empty
  CodingId coding = CodingId::none;
  std::string name;  // for people
  std::vector<Extent> content;
  Bytes inline_corrections;
  std::vector<Extent> corrections;

  bool is_literal() const { return !literal.empty(); }
};

struct RecipeEnd {
  std::uint64_t size = 0;
  Digest digest{};
};

void encode_recipe_start(std::string_view type, WireWriter& out);  // the format's name, for people
void encode_recipe_part(const RecipePart& part, WireWriter& out);
void encode_recipe_end(const RecipeEnd& end, WireWriter& out);

// The object that a container's extent names: the recipe, or where it is if it is long.
struct RecipeObject {
  Bytes bytes;
  std::vector<Extent> extents;  // instead: data and lists
};
Bytes encode_recipe_object(const RecipeObject& object);
// corrupt also if the recipe is much longer than what it is for: a recipe's length is what bounds the time
// that reading it takes.
Result<RecipeObject> load_recipe(ObjectReader& reader, const Extent& container);
// How long a container's recipe may be.
inline std::uint64_t most_recipe_bytes(std::uint64_t container_bytes) {
  constexpr std::uint64_t kMost = 1 << 30;
  return container_bytes >= kMost / 16 ? kMost : 16 * container_bytes + 4096;
}

// Parts one at a time, from bytes that nobody vouches for. The source must outlive it. One thread at a time.
class RecipeReader {
 public:
  explicit RecipeReader(ByteSource& source) : in_(source) {}

  Result<std::optional<RecipePart>> next();          // nothing after the last
  const std::string& type() const { return type_; }  // once next() was called
  const RecipeEnd& end() const { return end_; }      // once next() has given nothing

 private:
  PeekSource in_;
  bool started_ = false;
  std::string type_;
  RecipeEnd end_;
};

}  // namespace kin
