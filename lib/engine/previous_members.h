// PreviousMembers: what each member of a container was in the container's earlier version, which is the
// likeliest base for what it is now. One thread at a time.
//
// Members are told apart by name, those of one name by their order. Of members without a name only the first
// is remembered: a mailbox's messages move up when one is deleted, and then each would be compared with
// another's.
#pragma once

#include "lib/object/node.h"
#include "lib/object/object_store.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kin {

class PreviousMembers {
 public:
  // Reads the earlier version's recipe, if there is one, as far as is worth remembering. It is only a hint,
  // so what cannot be read is as if it were not there.
  PreviousMembers(ObjectReader& reader, const std::optional<Extent>& container);

  // What the next member of this name was; empty if there was none.
  std::vector<Extent> next(const std::string& name);

 private:
  using Place = std::pair<std::string, unsigned>;  // the name, and how many of that name come before
  std::map<Place, std::vector<Extent>> members_;
  std::map<std::string, unsigned> asked_;
};

// The content's one extent, if that is a container's.
std::optional<Extent> container_of(const std::vector<Extent>& content);
// The object at this place in the content, if there is one.
std::optional<ObjectId> data_at(const std::vector<Extent>& content, std::size_t place);

}  // namespace kin
