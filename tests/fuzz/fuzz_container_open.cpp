// Containers from hostile bytes: what opens comes back exactly.
#include "formats/formats.h"
#include "lib/base/check.h"
#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

#include <cstdint>
#include <map>

namespace {

// Parts as a backup would keep them, but each content as one object.
class Parts : public kin::PartSink, public kin::ObjectReader {
 public:
  kin::Result<void> literal(kin::ByteView bytes) override {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kin::kMostLiteral))) {
      kin::RecipePart part;
      kin::append(part.literal, bytes.first(std::min(bytes.size(), kin::kMostLiteral)));
      encode_recipe_part(part, recipe);
    }
    return {};
  }
  kin::Result<void> member(std::string_view name, kin::ByteSource& bytes) override {
    kin::RecipePart part;
    part.name = name;
    KIN_TRY(keep(bytes, nullptr, part));
    if (!part.content.empty()) encode_recipe_part(part, recipe);
    return {};
  }
  kin::Result<void> coded_member(kin::CodingId coding, std::string_view name,
                                 kin::MemberSource& plain) override {
    kin::RecipePart part;
    part.coding = coding;
    part.name = name;
    KIN_TRY(keep(plain, &plain, part));
    encode_recipe_part(part, recipe);
    return {};
  }
  kin::Result<std::shared_ptr<const kin::Bytes>> load(const kin::ObjectId& id) override {
    return std::make_shared<const kin::Bytes>(objects.at(id));
  }
  kin::Result<bool> contains(const kin::ObjectId& id) override { return objects.contains(id); }

  kin::Extent put(kin::Bytes bytes) {
    const kin::ObjectId id{kin::hash(bytes)};
    const std::uint64_t size = bytes.size();
    objects.emplace(id, std::move(bytes));
    return {kin::Extent::Kind::data, size, id};
  }

  kin::WireWriter recipe;
  std::map<kin::ObjectId, kin::Bytes> objects;

 private:
  kin::Result<void> keep(kin::ByteSource& source, kin::MemberSource* coded, kin::RecipePart& part) {
    kin::Bytes content, corrections, buffer(64 << 10);
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
      kin::append(content, kin::ByteView(buffer).first(got));
      if (coded != nullptr) kin::append(corrections, coded->take_corrections());
      if (content.size() > (8 << 20)) return kin::Error(kin::ErrorCode::unsupported, "too much");
      if (got < buffer.size()) break;
    }
    if (!content.empty()) part.content = {put(std::move(content))};
    if (!corrections.empty()) part.corrections = {put(std::move(corrections))};
    return {};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  for (const kin::ContainerFormat& format : kin::formats::all().containers) {
    if (!format.detect(input.first(std::min(size, kin::kHeadBytes)))) continue;
    kin::MemorySource source(kin::Bytes(input.begin(), input.end()));
    kin::PeekSource in(source);
    Parts parts;
    encode_recipe_start(format.name, parts.recipe);
    if (!format.open(in, parts, {})) continue;
    encode_recipe_end({size, kin::hash(input)}, parts.recipe);
    const kin::Extent object = parts.put(kin::encode_recipe_object({{}, {parts.put(parts.recipe.take())}}));
    kin::ContentSource back(parts, kin::formats::all(), {{kin::Extent::Kind::container, size, object.id}});
    kin::Bytes buffer(size + 1);
    const auto got = back.read(buffer);
    KIN_CHECK(got.has_value() && *got == size);
    KIN_CHECK(kin::equal(kin::ByteView(buffer).first(size), input));
  }
  return 0;
}
