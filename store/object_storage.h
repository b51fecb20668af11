// How objects are stored, for people who want to know: from block headers and index segments alone, without
// any content.
#pragma once

#include "store/repository.h"

#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kin::store {

// Written nowhere: what a block's header comes to.
enum class BlockForm { whole, delta, group };
const char* name_of(BlockForm form);
std::string codec_name(std::uint8_t codec);  // also of one that this kin does not know

// Bytes of the repository that are an object's, where a block holds several: as many as its part of the
// content.
std::uint64_t share_of(std::uint64_t size, std::uint64_t stored_size, std::uint64_t content_size);

// Where it is; corrupt if it is nowhere.
Result<Location> require_location(Repository& repository, const ObjectId& id);

// An object in its block.
struct StoredObject {
  ObjectId id;
  std::uint64_t size = 0;
  BlockRef block;
  std::uint8_t codec = 0;
  std::uint64_t block_objects = 1;
  std::optional<ObjectId> base;
  Sketch features;

  BlockForm form() const {
    return base ? BlockForm::delta : block_objects > 1 ? BlockForm::group : BlockForm::whole;
  }
  std::uint64_t share() const { return share_of(size, block.stored_size, block.content_size); }
};

struct StorageChain {
  std::vector<StoredObject> links;  // the object, its base, the base's base, ... to a block without one
  std::optional<Error> damage;      // what hid the next link
};
// Reads them, and keeps the headers of the blocks it has seen last: one of a group has thousands of objects,
// and to read it for each of them took nearly all the time. One thread at a time. The repository must outlive
// it.
class StorageChains {
 public:
  explicit StorageChains(Repository& repository) : repository_(repository) {}

  // Damage ends the chain; other errors are the caller's.
  Result<StorageChain> of(const ObjectId& id);

 private:
  struct Header {
    BlockRef block;
    BlockHeader header;
    std::unordered_map<ObjectId, std::size_t, ObjectIdHash> places;  // in header.objects
    std::uint64_t objects = 0;                                       // that are not the group itself
  };

  Result<const Header*> header_of(const BlockRef& block);
  Result<StoredObject> find(const ObjectId& id);

  Repository& repository_;
  std::list<Header> headers_;  // the last first
};

// How many features two objects have in common.
std::size_t matching_features(const Sketch& a, const Sketch& b);

struct EncodingTotals {
  std::uint64_t blocks = 0, objects = 0, content_bytes = 0, stored_bytes = 0;
};
using EncodingTable = std::map<std::pair<std::uint8_t, BlockForm>, EncodingTotals>;  // by codec and form
// Of all blocks that the index lists, each once. One segment in memory at a time, and a number per block.
Result<EncodingTable> count_encodings(Repository& repository);

}  // namespace kin::store
