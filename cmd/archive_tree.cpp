#include "cmd/archive_tree.h"

#include "cmd/tree_walk.h"
#include "formats/formats.h"
#include "lib/container/content_source.h"

namespace kin::cmd {
namespace {

constexpr std::size_t kContentStepBytes = 1 << 20;

struct Loss {
  const char* key;  // in JSON
  const char* text;
  std::uint64_t ArchiveCounts::*count;
};
constexpr Loss kLosses[] = {
    {"sockets", "sockets", &ArchiveCounts::sockets},
    {"special_files", "devices and FIFOs", &ArchiveCounts::special_files},
    {"owners", "owners", &ArchiveCounts::owners},
    {"owner_names", "names of owners", &ArchiveCounts::owner_names},
    {"times", "exact times", &ArchiveCounts::times},
    {"attributes", "extended attributes or ACLs", &ArchiveCounts::attributes},
    {"hard_links", "hard links, now files of their own", &ArchiveCounts::links},
    {"holes", "holes, now zeros", &ArchiveCounts::holes},
    {"names", "names that are not UTF-8, now with %NN", &ArchiveCounts::names},
};

// Bytes that are not UTF-8 as %NN. Not as \xNN, which is how kin shows them: some programs take a backslash
// for a slash.
std::string escaped(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    std::size_t size = 1;
    while (size <= 4 && !is_valid_utf8(name.substr(0, size))) ++size;
    if (size > 4) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(name[0]));
      size = 1;
    } else {
      out += name.substr(0, size);
    }
    name.remove_prefix(std::min(size, name.size()));
  }
  return out;
}

// Whether escaped() could have made it of another.
bool looks_escaped(std::string_view name) {
  const auto is_one_of = [&](std::size_t at, std::string_view digits) {
    return at < name.size() && digits.find(name[at]) != std::string_view::npos;
  };
  for (std::size_t at = 0; (at = name.find('%', at)) != std::string_view::npos; ++at)
    if (is_one_of(at + 1, "89ABCDEF") && is_one_of(at + 2, "0123456789ABCDEF")) return true;
  return false;
}

}  // namespace

std::string lost_text(const ArchiveCounts& counts) {
  std::string out;
  for (const Loss& loss : kLosses)
    if (const std::uint64_t count = counts.*loss.count; count > 0)
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", loss.text, grouped(count));
  return out;
}

Json lost_json(const ArchiveCounts& counts) {
  Json out = Json::object();
  for (const Loss& loss : kLosses)
    if (const std::uint64_t count = counts.*loss.count; count > 0) out[loss.key] = count;
  return out;
}

Result<void> write_content(ObjectReader& reader, const Node& file, const ArchiveTree::Write& write,
                           const std::stop_token& stop) {
  ContentSource content(reader, formats::all(), file.content);
  Bytes buffer(kContentStepBytes);
  for (;;) {
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::size_t got, content.read(buffer));
    if (got > 0) KIN_TRY(write(ByteView(buffer).first(got)));
    if (got < buffer.size()) return {};
  }
}

Result<void> ArchiveTree::add(const Node& node, const std::string& path) {
  if (progress_ != nullptr) progress_->tick(path);
  const bool socket = node.type == NodeType::socket;
  const bool special = node.type == NodeType::fifo || node.type == NodeType::character_device ||
                       node.type == NodeType::block_device;
  if (socket || (special && !form_.special_files)) {
    ++(socket ? counts_.sockets : counts_.special_files);
    context_.warn(fmt::format("{} is a {}, and {} has none: left out", printable(path),
                              socket                        ? "socket"
                              : node.type == NodeType::fifo ? "FIFO"
                                                            : "device",
                              form_.name));
    return {};
  }
  count_losses(node);
  ++(node.type == NodeType::file        ? counts_.files
     : node.type == NodeType::directory ? counts_.directories
                                        : counts_.others);
  const std::string name = archived(node, path).substr(1);
  if (node.links > 1 && node.type != NodeType::directory) {
    const auto [first, is_first] =
        first_names_.try_emplace({node.device, node.inode, content_digest(node)}, name);
    if (!is_first && form_.links == formats::ArchiveForm::Links::none) {
      ++counts_.links;
    } else if (!is_first) {
      return archive_.add_link(node, name, first->second);
    }
  }
  if (node.type != NodeType::file) return archive_.add(node, name);
  auto added = add_file(node, name);
  if (!added) return std::move(added).error().context("cannot write " + printable(path));
  if (progress_ != nullptr) progress_->add_files(1);
  return {};
}

Result<void> ArchiveTree::add_file(const Node& node, const std::string& name) {
  if (node.size > form_.most_file_bytes)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("it has {}, and in {} no file has more than {}", human_bytes(node.size),
                             form_.name, human_bytes(form_.most_file_bytes)));
  KIN_TRY_ASSIGN(const std::vector<formats::DataRange> data, data_ranges(node));
  const bool sparse = node.size > 0 && (data.size() != 1 || data.front().size != node.size);
  if (sparse && !form_.holes) ++counts_.holes;
  KIN_TRY(sparse ? archive_.add_sparse(node, name, data) : archive_.add(node, name));
  counts_.bytes += node.size;
  return write_content(
      reader_, node,
      [&](ByteView bytes) {
        if (progress_ != nullptr) {
          progress_->add_bytes(bytes.size());
          progress_->tick(name);
        }
        return archive_.write(bytes);
      },
      context_.stop());
}

Result<void> ArchiveTree::add_below(const ObjectId& tree, const std::string& path) {
  TreeVisitor visitor;
  visitor.enter = [&](const Node& node, const std::string& node_path) -> Result<bool> {
    KIN_TRY(add(node, node_path));
    return true;
  };
  return walk_tree(reader_, tree, path, visitor, context_.stop());
}

std::string ArchiveTree::archived(const Node& node, const std::string& path) {
  if (form_.any_names) return path;
  const std::size_t slash = path.rfind('/');
  const auto parent = renamed_directories_.find(path.substr(0, slash));
  const std::string name = escaped(std::string_view(path).substr(slash + 1));
  const std::string wanted =
      (parent != renamed_directories_.end() ? parent->second : path.substr(0, slash)) + "/" + name;
  std::string out = wanted;
  if (looks_escaped(name))
    for (int number = 2; !escaped_paths_.insert(out).second; ++number)
      out = fmt::format("{}_{}", wanted, number);
  if (out == path) return out;
  ++counts_.names;
  if (node.type == NodeType::directory) renamed_directories_.emplace(path, out);
  return out;
}

void ArchiveTree::count_losses(const Node& node) {
  if (!form_.owners) ++counts_.owners;
  if (form_.owners && !form_.owner_names && !(node.user.empty() && node.group.empty())) ++counts_.owner_names;
  // Before 1970 tar has whole seconds, and the others have nothing.
  const bool early =
      node.mtime.seconds < 0 && (form_.time_step_nanoseconds > 1 || node.mtime.nanoseconds != 0);
  if (node.mtime.nanoseconds % form_.time_step_nanoseconds != 0 || early) ++counts_.times;
  if (!form_.attributes && !node.attributes.empty()) ++counts_.attributes;
}

Result<std::vector<formats::DataRange>> ArchiveTree::data_ranges(const Node& node) {
  std::vector<formats::DataRange> out;
  KIN_TRY(
      for_each_extent(reader_, node.content, [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (extent.kind == Extent::Kind::hole) return {};
        if (out.empty() || out.back().offset + out.back().size != offset) out.push_back({offset, 0});
        out.back().size += extent.size;
        return {};
      }));
  return out;
}

}  // namespace kin::cmd
