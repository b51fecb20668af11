// Trees, nodes and extent lists from hostile bytes.
//
// The input is several objects, each behind its length (two bytes). They refer to each other by number: the
// first byte of an id. So the fuzzer can build trees of many objects, and what would be a loop is possible
// here, though not with ids that are hashes.
#include "lib/base/check.h"
#include "lib/object/tree.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace kin {
namespace {

class NumberedObjects : public ObjectReader {
 public:
  explicit NumberedObjects(ByteView input) {
    while (input.size() >= 2 && objects_.size() < 256) {
      const std::size_t size = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
      const ByteView object = input.subspan(2, size);
      objects_.push_back(std::make_shared<const Bytes>(object.begin(), object.end()));
      input = input.subspan(2 + size);
    }
  }

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override {
    // A small input may name one object very often; that is slow, but no bug.
    if (++loads_ > 1000 || id.bytes[0] >= objects_.size()) return Error(ErrorCode::corrupt, "missing");
    return objects_[id.bytes[0]];
  }
  Result<bool> contains(const ObjectId& id) override { return id.bytes[0] < objects_.size(); }

 private:
  std::vector<std::shared_ptr<const Bytes>> objects_;
  int loads_ = 0;
};

void read_tree(ByteView input) {
  NumberedObjects objects(input);
  TreeCursor cursor(objects, ObjectId{});
  std::string last_name;
  for (;;) {
    const auto node = cursor.next();
    if (!node || !*node) return;
    KIN_CHECK(is_safe_name((*node)->name) && last_name < (*node)->name);
    last_name = (*node)->name;
    std::uint64_t end = 0;
    const auto visited = for_each_extent(objects, (*node)->content,
                                         [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
                                           KIN_CHECK(offset == end && extent.kind != Extent::Kind::list);
                                           end += extent.size;
                                           return {};
                                         });
    if (visited) KIN_CHECK(end == (*node)->size);
    const auto found = find_in_tree(objects, ObjectId{}, last_name);
    if (found && *found) KIN_CHECK((*found)->name == last_name);
  }
}

void read_node(ByteView input) {
  WireReader in(input);
  const Node node = decode_node(in);
  if (in.failed()) return;
  // What was accepted can be written and is then read as the same.
  WireWriter out;
  encode_node(node, out);
  WireReader again(out.bytes());
  const Node second = decode_node(again);
  KIN_CHECK(again.finish("node").has_value());
  WireWriter twice;
  encode_node(second, twice);
  KIN_CHECK(twice.bytes() == out.bytes());
}

}  // namespace
}  // namespace kin

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kin::read_tree({data, size});
  kin::read_node({data, size});
  return 0;
}
