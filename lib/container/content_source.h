// ContentSource: a file's content as bytes, whatever its extents are. Containers are put together again on
// the way, members within members; their digests are compared at their ends, so read to the end: what comes
// before it is not vouched for. One object of each level is in memory. The reader must outlive it. One thread
// at a time.
#pragma once

#include "lib/container/byte_source.h"
#include "lib/container/container_format.h"
#include "lib/object/content.h"

#include <functional>
#include <memory>
#include <vector>

namespace kin {

// A container in a container in ...: this many are opened, and one more is an error.
inline constexpr int kMostContainerDepth = 8;

// What the codings of a container's members may make, at all levels together: more is a bomb, or might as
// well be.
inline constexpr std::uint64_t most_coded_bytes(std::uint64_t container_bytes) {
  constexpr std::uint64_t kMostRatio = 256, kAlwaysBytes = 64 << 20;
  return container_bytes > UINT64_MAX / kMostRatio ? UINT64_MAX
                                                   : std::max(container_bytes * kMostRatio, kAlwaysBytes);
}

class ContentSource : public ByteSource {
 public:
  ContentSource(ObjectReader& reader, const Formats& formats, std::vector<Extent> extents);
  // `depth`: of the containers that it is in; the outermost has so many coded bytes left.
  ContentSource(ObjectReader& reader, const Formats& formats, std::vector<Extent> extents, int depth,
                std::shared_ptr<std::uint64_t> coded_left);
  ~ContentSource() override;

  // corrupt: an object is missing, damaged, or not of its extent's size; a container does not come out as it
  // went in. unsupported: made by a newer kin.
  Result<std::size_t> read(std::span<std::uint8_t> into) override;

 private:
  struct Pending {
    Extent extent;
    std::size_t level;  // of lists that it is in
  };

  Result<void> next_extent();
  void push(const std::vector<Extent>& extents, std::size_t level);

  ObjectReader& reader_;
  const Formats formats_;
  const int depth_;
  const std::shared_ptr<std::uint64_t> coded_left_;
  std::vector<Pending> pending_;  // the next one last
  std::shared_ptr<const Bytes> object_;
  std::size_t at_ = 0;  // in the object
  std::uint64_t zeros_ = 0;
  std::unique_ptr<ByteSource> container_;
};

// The bytes of a container's recipe, for a RecipeReader. The reader must outlive it.
Result<std::unique_ptr<ByteSource>> open_recipe(ObjectReader& reader, const Extent& container);

// Calls `visit` for every object that the content needs: its data, lists, recipes, and what they lead to.
// What lies below a list or recipe is visited once, however often it is met, and not at all if `visit` gives
// false for it.
using VisitObject = std::function<Result<bool>(const Extent& extent)>;
Result<void> for_each_object(ObjectReader& reader, const std::vector<Extent>& extents,
                             const VisitObject& visit);

}  // namespace kin
