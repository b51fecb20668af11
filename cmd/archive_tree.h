// ArchiveTree: what a snapshot has, as entries of an archive: content, hard links, holes. It counts what the
// archive's form could not hold. For dump and export. One thread at a time.
#pragma once

#include "cmd/progress.h"
#include "formats/archive_writer.h"
#include "lib/object/object_store.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

namespace kin::cmd {

struct ArchiveCounts {
  std::uint64_t files = 0, directories = 0, others = 0, bytes = 0;
  // Left out, as the form has nothing like it.
  std::uint64_t sockets = 0, special_files = 0;
  // Entries of which something could not be kept.
  std::uint64_t owners = 0, owner_names = 0, times = 0, attributes = 0, links = 0, holes = 0, names = 0;
};

// Part of a sentence: "owners (3), ...", in entries; empty if nothing was lost.
std::string lost_text(const ArchiveCounts& counts);
Json lost_json(const ArchiveCounts& counts);

class ArchiveTree {
 public:
  using Write = formats::ArchiveWriter::Write;

  // `progress` may be null. All must outlive this.
  ArchiveTree(Context& context, ObjectReader& reader, const formats::ArchiveKind& kind, Write write,
              Progress* progress = nullptr)
      : context_(context),
        reader_(reader),
        form_(*kind.form),
        archive_(kind, std::move(write)),
        progress_(progress) {}

  // `path` is "/" + the name in the archive. What the form cannot hold is left out with a warning. Content is
  // never left out: invalid_argument if the form has no room for it.
  Result<void> add(const Node& node, const std::string& path);
  // All that is in a tree, below `path`.
  Result<void> add_below(const ObjectId& tree, const std::string& path);
  Result<void> finish() { return archive_.finish(); }

  const ArchiveCounts& counts() const { return counts_; }

 private:
  void count_losses(const Node& node);
  // What `path` is in the archive: names that the form cannot hold are made others, no two alike.
  std::string archived(const Node& node, const std::string& path);
  Result<void> add_file(const Node& node, const std::string& path);
  Result<std::vector<formats::DataRange>> data_ranges(const Node& node);

  Context& context_;
  ObjectReader& reader_;
  const formats::ArchiveForm& form_;
  formats::ArchiveWriter archive_;
  Progress* const progress_;
  ArchiveCounts counts_;
  // By device, inode and content, of files with several names.
  std::map<std::tuple<std::uint64_t, std::uint64_t, Digest>, std::string> first_names_;
  std::map<std::string, std::string> renamed_directories_;
  std::set<std::string> escaped_paths_;  // and those that look so
};

// To the end, and not only to the last byte: that is where a container turns out to be right.
Result<void> write_content(ObjectReader& reader, const Node& file, const ArchiveTree::Write& write,
                           const std::stop_token& stop);

}  // namespace kin::cmd
