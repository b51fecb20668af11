// BlockUse: which stored blocks some snapshots need: by what their trees name, by what lists and recipes
// name, and by what deltas lean on. So it can be told, to the byte, what would be free without them, and
// prune knows what may go.
//
// Some 16 bytes for each object and 24 for each block of the repository. Objects are told apart by the first
// 8 bytes of their ids: where two have the same, both are needed if one is. One thread at a time.
#pragma once

#include "lib/object/snapshot.h"
#include "store/repository.h"

#include <map>
#include <set>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace kin::store {

class BlockUse {
 public:
  // Reads all index segments. One that cannot be read is an error: what is not known is not free.
  static Result<BlockUse> read(Repository& repository, const std::stop_token& stop);
  // Reads the segments that have come since.
  Result<void> refresh(const std::stop_token& stop);

  // Adds what it needs. corrupt if an object is missing or cannot be read: then nothing is known of what it
  // would need.
  Result<void> add(const Snapshot& snapshot, const std::stop_token& stop);

  struct Sizes {
    std::uint64_t blocks = 0, bytes = 0;  // as they are stored
  };
  Sizes needed() const { return needed_; }  // by those added so far
  Sizes all() const { return all_; }

  // Of an object that is stored more than once, all places are needed until this: then one that can be read
  // is, outside these packs if there is such. Of what is added later, all are again.
  Result<void> choose_places(const std::function<bool(const ObjectId& pack)>& is_avoided,
                             const std::stop_token& stop);

  struct Pack {
    ObjectId id;
    std::uint64_t size = 0;
    bool is_needed = false;
    double used_bytes = 0;  // the needed blocks', and of groups the needed objects' share
  };
  std::vector<Pack> packs() const;  // that the segments list

  // The needed blocks of these packs, each pack's by offset.
  std::map<ObjectId, std::vector<BlockRef>> needed_blocks(const std::set<ObjectId>& packs) const;
  bool is_needed(const ObjectId& id, const BlockRef& at);
  // As content, by a file of what was added; not only by deltas that lean on it.
  bool is_content(const ObjectId& id);

  // Where an object counts as stored, once places are chosen.
  struct Standing {
    BlockRef block;
    unsigned depth = 0;     // deltas from there to the end of its chain
    bool is_named = false;  // some object of the block is needed for itself, not as a base alone
  };
  // Nothing for what is not needed, or needed in several places.
  std::optional<Standing> standing(const ObjectId& id);
  // Needed blocks that nothing names: they are there for those that lean on them.
  struct BaseOnly {
    Standing at;
    std::vector<BlockRef> leaning;
  };
  std::vector<BaseOnly> bases_only();  // the deepest first
  // Packs with places that were not chosen, of objects that are needed elsewhere, whose base is not needed.
  // When that is gone, nobody should find such a place listed.
  std::set<ObjectId> packs_with_strays();
  // What is in these is chosen elsewhere, if it is elsewhere too.
  void forsake(const std::set<BlockRef>& blocks);

 private:
  // Bytes may be a tree for one and a file's content for another: what lies below is looked at for each.
  enum Role : std::uint8_t {
    kTree = 1,
    kList = 2,
    kData = 4,
    kHere = 8
  };  // here: it is needed at this place
  struct Object {
    std::uint64_t prefix = 0;
    std::uint32_t block = 0;
    std::uint32_t size : 24 = 0;  // or the most that this can say; no member of a group has so much
    std::uint32_t roles : 8 = 0;
  };
  struct Block {
    std::uint64_t base = 0;  // its prefix, if it has one
    std::uint32_t bytes = 0;
    std::uint32_t pack : 30 = 0;
    std::uint32_t is_named : 1 = 0;
    std::uint32_t is_forsaken : 1 = 0;
    std::uint32_t offset = 0;
    std::uint32_t content_size : 27 = 0;
    std::uint32_t has_base : 1 = 0;
    std::uint32_t is_needed : 1 = 0;
    std::uint32_t was_read : 1 = 0;  // and is sound
    std::uint32_t knows_header : 1 = 0;
    std::uint32_t is_baseless : 1 = 0;
  };
  using Places = std::vector<Object>::iterator;

  explicit BlockUse(Repository& repository) : repository_(&repository) {}
  // not_found if one is gone; what was read before it stays.
  Result<void> read_segments(const std::vector<FileInfo>& files, const std::stop_token& stop, bool& read_any);
  Result<void> add_segment(const IndexSegment& segment);
  void settle();
  void join_equal_blocks();
  // Gives whether it is new in this role; corrupt if no segment has it.
  Result<bool> need(const ObjectId& id, Role role);
  Result<void> need_all_places(std::uint64_t prefix);
  void drop_baseless();
  void need_at(Object& place, std::vector<std::uint64_t>& left);
  Result<void> choose_places_of(std::uint64_t prefix, const std::vector<bool>& avoided);
  bool leans_on(std::uint64_t prefix, std::uint64_t base);  // by the places that are chosen
  void need_all_below(std::uint64_t prefix);
  Result<void> choose_place(Places begin, Places end, const std::vector<bool>& avoided,
                            std::vector<std::uint64_t>& left);
  Result<bool> is_same_object(Places begin, Places end);
  std::optional<std::uint32_t> only_place(std::uint64_t prefix);
  unsigned depth(std::uint32_t block);
  Result<void> read_header(std::uint32_t block);
  static std::uint64_t rest_key(const Object& place);
  bool is_readable(Block& block);
  std::pair<Places, Places> find(std::uint64_t prefix);
  BlockRef ref(const Block& block) const;
  Result<void> walk(const ObjectId& tree, int depth, const std::stop_token& stop);

  Repository* repository_;
  std::set<std::string> segments_;  // that were read
  std::vector<IndexPack> packs_;
  std::map<ObjectId, std::uint32_t> pack_numbers_;
  std::vector<Object> objects_;  // by prefix
  std::vector<Block> blocks_;
  std::unordered_map<std::uint64_t, std::uint64_t> id_rests_;  // more of the ids, while places are chosen
  Sizes needed_, all_;
};

}  // namespace kin::store
