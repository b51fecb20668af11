// ContentCosts: where the bytes of one snapshot are: by directory, type and file, what they are and what they
// take. An object that several files have counts where it is met first, so what is stored adds up.
#pragma once

#include "cmd/context.h"
#include "cmd/html_page.h"
#include "lib/object/node.h"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kin::cmd {

class ContentCosts {
 public:
  struct Tally {
    std::uint64_t files = 0, bytes = 0, stored = 0;
    std::uint64_t saved() const { return bytes - std::min(bytes, stored); }
    void add(const Tally& other) {
      files += other.files;
      bytes += other.bytes;
      stored += other.stored;
    }
  };
  struct Named {
    std::string name;  // a path, or a type
    Tally tally;
  };
  enum class Order { stored, saved };
  static constexpr std::size_t kShownParts = 60;

  // The `most` of each are kept of files.
  ContentCosts(store::Repository& repository, std::size_t most) : repository_(repository), most_(most) {}

  Result<void> add(const Snapshot& snapshot, const std::stop_token& stop);

  const Tally& all() const { return all_; }
  // The first by this order. Of a directory of which a single one in it has more than three quarters, only
  // that.
  std::vector<Named> directories(Order order) const;
  std::vector<Named> types(Order order) const;
  // Directories that are all of it, none in another: the largest are in parts, up to so many. Of one
  // that is in parts, files right in it are a part of that name.
  std::vector<Named> parts(std::size_t most) const;
  std::vector<Named> files(Order order) const { return order == Order::stored ? costliest_ : most_saving_; }

 private:
  struct Directory {
    Tally tally;        // with all below
    Tally largest;      // of those in it, by what is stored
    Tally most_saving;  // by what is saved
  };

  Result<Tally> tally_of(const Node& file);
  void add_file(const std::string& path, const Node& node, const Tally& tally);
  void keep_best(std::vector<Named>& best, const std::string& path, const Tally& tally, Order order) const;
  std::vector<Named> first_of(std::vector<Named> all, Order order) const;

  store::Repository& repository_;
  const std::size_t most_;
  Tally all_;
  std::map<std::string, Directory> directories_;
  std::unordered_map<std::string, Tally> types_;
  std::vector<Named> costliest_, most_saving_;  // best first
  std::unordered_set<ObjectId, ObjectIdHash> seen_;
};

// As a map, and as a table.
void add_directories(HtmlPage& page, const std::vector<ContentCosts::Named>& parts, const char* caption);

}  // namespace kin::cmd
