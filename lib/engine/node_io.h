// Between a file on disk and its Node. All by directory descriptor and name: no path is ever too long, and
// nobody can swap a directory for a link on the way.
#pragma once

#include "lib/base/file.h"
#include "lib/object/node.h"

#include <map>
#include <string>

struct stat;

namespace kin {

// Names of users and groups, looked up once. One thread at a time.
class OwnerNames {
 public:
  const std::string& user(std::uint32_t uid);
  const std::string& group(std::uint32_t gid);

 private:
  std::map<std::uint32_t, std::string> users_, groups_;
};

// All but attributes, link target, content and subtree, which take further calls.
Node node_from_stat(std::string name, const struct stat& info, OwnerNames& names);
Result<struct stat> stat_at(int directory, const std::string& name);
Result<std::vector<ExtendedAttribute>> read_attributes(int directory, const std::string& name);
Result<std::string> read_link(int directory, const std::string& name);

// What has to be the same for a file to count as unmodified. ctime tells of changes of content and of
// metadata alike, and cannot be set by programs.
bool same_state(const Node& now, const Node& before);

// Sets owner, attributes, mode and times of an existing file of the node's type. What the system refuses to
// an unprivileged user (owner, trusted.*) is left out; the first other failure is the answer, after
// everything else was tried.
Result<void> apply_metadata(int directory, const std::string& name, const Node& node);

}  // namespace kin
