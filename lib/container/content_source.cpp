#include "lib/container/content_source.h"

#include "lib/base/text.h"
#include "lib/container/recipe.h"

#include <fmt/core.h>

#include <unordered_set>
#include <utility>

namespace kin {
namespace {

constexpr std::size_t kMostLevels = 8;  // of lists, as in lib/object/content.cpp

Error wrong_size(const Extent& extent, std::uint64_t size) {
  return Error(ErrorCode::corrupt,
               fmt::format("object {} has {} bytes, not {}", extent.id.short_hex(), size, extent.size));
}

Error too_deep() { return Error(ErrorCode::corrupt, "containers are nested too deep"); }

// What a coding reads, counted. Forged recipes could make it read for ever.
class PlainBytes : public ByteSource {
 public:
  PlainBytes(std::unique_ptr<ByteSource> source, std::shared_ptr<std::uint64_t> left)
      : source_(std::move(source)), left_(std::move(left)) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    KIN_TRY_ASSIGN(const std::size_t got, source_->read(into));
    if (got > *left_)
      return Error(ErrorCode::corrupt, "a container's members unpack to more than kin stores");
    *left_ -= got;
    return got;
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  const std::shared_ptr<std::uint64_t> left_;
};

// A container's bytes, part by part.
class RecipeSource : public ByteSource {
 public:
  RecipeSource(ObjectReader& reader, const Formats& formats, const Extent& extent, int depth,
               std::shared_ptr<std::uint64_t> coded_left, std::unique_ptr<ByteSource> recipe)
      : reader_(reader),
        formats_(formats),
        extent_(extent),
        depth_(depth),
        coded_left_(std::move(coded_left)),
        recipe_bytes_(std::move(recipe)),
        recipe_(*recipe_bytes_) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size() && !ended_) {
      if (!part_) {
        KIN_TRY(next_part());
        continue;
      }
      auto read = part_->read(into.subspan(done));
      if (!read) return in_member(std::move(read).error());
      const std::size_t got = *read;
      digest_.add(into.subspan(done, got));
      size_ += got;
      if (size_ > extent_.size) return differs();
      if (done + got < into.size()) part_.reset();
      done += got;
    }
    return done;
  }

 private:
  Error in_member(Error error) const {
    return name_.empty() ? error : std::move(error).context("member " + printable(name_));
  }

  Error differs() const {
    return Error(ErrorCode::corrupt,
                 fmt::format("container {} does not come out as it went in", extent_.id.short_hex()));
  }

  Result<void> next_part() {
    KIN_TRY_ASSIGN(std::optional<RecipePart> part, recipe_.next());
    if (!part) {
      ended_ = true;
      if (size_ != extent_.size || recipe_.end().size != size_ || recipe_.end().digest != digest_.finish())
        return differs();
      return {};
    }
    name_ = std::move(part->name);
    if (part->is_literal()) {
      part_ = std::make_unique<MemorySource>(std::move(part->literal));
      return {};
    }
    part_ = std::make_unique<ContentSource>(reader_, formats_, std::move(part->content), depth_, coded_left_);
    if (part->coding == CodingId::none) return {};
    const Coding* const coding = find_coding(formats_, part->coding);
    if (coding == nullptr)
      return in_member(
          Error(ErrorCode::unsupported, fmt::format("coding {} was made by a newer kin", int(part->coding))));
    std::unique_ptr<ByteSource> corrections;
    if (part->corrections.empty())
      corrections = std::make_unique<MemorySource>(std::move(part->inline_corrections));
    else
      corrections = std::make_unique<ContentSource>(reader_, formats_, std::move(part->corrections), depth_,
                                                    coded_left_);
    part_ = coding->rebuild(std::make_unique<PlainBytes>(std::move(part_), coded_left_),
                            std::move(corrections), formats_.search);
    return {};
  }

  ObjectReader& reader_;
  const Formats formats_;
  const Extent extent_;
  const int depth_;
  const std::shared_ptr<std::uint64_t> coded_left_;
  const std::unique_ptr<ByteSource> recipe_bytes_;
  RecipeReader recipe_;
  std::unique_ptr<ByteSource> part_;
  std::string name_;  // the part's, if it is a member that has one
  Hasher digest_;
  std::uint64_t size_ = 0;
  bool ended_ = false;
};

class Visitor {
 public:
  Visitor(ObjectReader& reader, const VisitObject& visit) : reader_(reader), visit_(visit) {}

  Result<void> visit(const std::vector<Extent>& extents, int depth, std::size_t level) {
    if (level > kMostLevels) return Error(ErrorCode::corrupt, "extent lists are nested too deep");
    if (depth > kMostContainerDepth) return too_deep();
    for (const Extent& extent : extents) {
      if (extent.kind == Extent::Kind::hole) continue;
      KIN_TRY_ASSIGN(const bool go_on, visit_(extent));
      if (!go_on || extent.kind == Extent::Kind::data || !entered_.insert(extent.id).second) continue;
      if (extent.kind == Extent::Kind::list) {
        KIN_TRY_ASSIGN(const std::vector<Extent> inner, load_list(reader_, extent));
        KIN_TRY(visit(inner, depth, level + 1));
      } else {
        KIN_TRY(visit_recipe(extent, depth + 1));
      }
    }
    return {};
  }

 private:
  Result<void> visit_recipe(const Extent& container, int depth) {
    KIN_TRY_ASSIGN(const RecipeObject object, load_recipe(reader_, container));
    KIN_TRY(visit(object.extents, depth, 0));
    KIN_TRY_ASSIGN(const auto bytes, open_recipe(reader_, container));
    RecipeReader recipe(*bytes);
    for (;;) {
      KIN_TRY_ASSIGN(const std::optional<RecipePart> part, recipe.next());
      if (!part) return {};
      KIN_TRY(visit(part->content, depth, 0));
      KIN_TRY(visit(part->corrections, depth, 0));
    }
  }

  ObjectReader& reader_;
  const VisitObject& visit_;
  std::unordered_set<ObjectId, ObjectIdHash> entered_;  // lists and recipes
};

}  // namespace

ContentSource::ContentSource(ObjectReader& reader, const Formats& formats, std::vector<Extent> extents)
    : ContentSource(reader, formats, std::move(extents), 0, nullptr) {}

ContentSource::ContentSource(ObjectReader& reader, const Formats& formats, std::vector<Extent> extents,
                             int depth, std::shared_ptr<std::uint64_t> coded_left)
    : reader_(reader), formats_(formats), depth_(depth), coded_left_(std::move(coded_left)) {
  push(extents, 0);
}

ContentSource::~ContentSource() = default;

void ContentSource::push(const std::vector<Extent>& extents, std::size_t level) {
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent)
    pending_.push_back({*extent, level});
}

Result<void> ContentSource::next_extent() {
  const auto [extent, level] = pending_.back();
  pending_.pop_back();
  switch (extent.kind) {
    case Extent::Kind::hole:
      zeros_ = extent.size;
      return {};
    case Extent::Kind::list: {
      if (level >= kMostLevels) return Error(ErrorCode::corrupt, "extent lists are nested too deep");
      KIN_TRY_ASSIGN(const std::vector<Extent> inner, load_list(reader_, extent));
      push(inner, level + 1);
      return {};
    }
    case Extent::Kind::data: {
      KIN_TRY_ASSIGN(object_, reader_.load(extent.id));
      at_ = 0;
      if (object_->size() != extent.size) return wrong_size(extent, object_->size());
      return {};
    }
    case Extent::Kind::container: {
      if (depth_ >= kMostContainerDepth) return too_deep();
      KIN_TRY_ASSIGN(auto recipe, open_recipe(reader_, extent));
      container_ = std::make_unique<RecipeSource>(
          reader_, formats_, extent, depth_ + 1,
          coded_left_ ? coded_left_ : std::make_shared<std::uint64_t>(most_coded_bytes(extent.size)),
          std::move(recipe));
      return {};
    }
  }
  return {};
}

Result<std::size_t> ContentSource::read(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::span<std::uint8_t> rest = into.subspan(done);
    if (container_) {
      KIN_TRY_ASSIGN(const std::size_t got, container_->read(rest));
      if (got < rest.size()) container_.reset();
      done += got;
    } else if (zeros_ > 0) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), zeros_));
      std::fill_n(rest.begin(), size, std::uint8_t{0});
      zeros_ -= size;
      done += size;
    } else if (object_ && at_ < object_->size()) {
      const std::size_t size = std::min(rest.size(), object_->size() - at_);
      std::copy_n(object_->begin() + static_cast<std::ptrdiff_t>(at_), size, rest.begin());
      at_ += size;
      done += size;
    } else if (!pending_.empty()) {
      object_.reset();
      KIN_TRY(next_extent());
    } else {
      break;
    }
  }
  return done;
}

Result<std::unique_ptr<ByteSource>> open_recipe(ObjectReader& reader, const Extent& container) {
  KIN_TRY_ASSIGN(RecipeObject object, load_recipe(reader, container));
  if (object.extents.empty())
    return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(std::move(object.bytes)));
  // At the last depth: a recipe is in no container.
  return std::unique_ptr<ByteSource>(std::make_unique<ContentSource>(
      reader, Formats(), std::move(object.extents), kMostContainerDepth, nullptr));
}

Result<void> for_each_object(ObjectReader& reader, const std::vector<Extent>& extents,
                             const VisitObject& visit) {
  return Visitor(reader, visit).visit(extents, 0, 0);
}

}  // namespace kin
