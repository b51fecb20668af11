#include "cmd/backup_sources.h"

#include "lib/base/file.h"
#include "lib/base/text.h"

#include <algorithm>
#include <filesystem>

namespace kin::cmd {
namespace {

constexpr std::uint64_t kMostListBytes = 256 << 20;

// "a/../b" -> {b}; what leads out of where it starts keeps its "..".
std::vector<std::string> normal_components(const std::string& path) {
  std::vector<std::string> out;
  for (std::string& name : path_components(path)) {
    if (name == ".." && !out.empty() && out.back() != "..") {
      out.pop_back();
    } else if (name != ".." || !path.starts_with('/')) {
      out.push_back(std::move(name));
    }
  }
  return out;
}

bool lies_in(const std::vector<std::string>& path, const std::vector<std::string>& directory) {
  return path.size() >= directory.size() && std::equal(directory.begin(), directory.end(), path.begin());
}

// Sources inside others are left out; two that would only share a place in the snapshot are refused.
Result<std::vector<BackupSource>> without_overlap(std::vector<BackupSource> sources) {
  if (sources.size() > 1) {
    // The current directory's entries are the snapshot's root; beside others it needs a place of its own.
    for (BackupSource& source : sources)
      if (source.tree_path.empty() && absolute_path(source.path) != "/") {
        source.path = absolute_path(source.path);
        source.tree_path = normal_components(source.path);
      }
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const BackupSource& a, const BackupSource& b) { return a.tree_path < b.tree_path; });
  std::vector<BackupSource> out;
  for (BackupSource& source : sources) {
    if (out.empty() || !lies_in(source.tree_path, out.back().tree_path)) {
      out.push_back(std::move(source));
    } else if (!lies_in(normal_components(absolute_path(source.path)),
                        normal_components(absolute_path(out.back().path)))) {
      return Error(
          ErrorCode::invalid_argument,
          fmt::format("{} and {} would have the same place in the snapshot; give both as absolute paths",
                      printable(out.back().path), printable(source.path)));
    }
  }
  return out;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  std::error_code ignored;
  std::string out;
  for (const std::string& name : normal_components(std::filesystem::absolute(path, ignored).string()))
    out += "/" + name;
  return out.empty() ? "/" : out;
}

Result<std::vector<BackupSource>> backup_sources(const std::vector<std::string>& paths,
                                                 const std::string& as_path) {
  if (!as_path.empty() && paths.size() != 1)
    return Error(ErrorCode::invalid_argument, "--as-path goes with exactly one path");
  if (!as_path.empty() && !normal_components(as_path).empty() && normal_components(as_path).front() == "..")
    return Error(ErrorCode::invalid_argument, "--as-path leads out of the snapshot: " + printable(as_path));
  std::vector<BackupSource> out;
  for (const std::string& path : paths) {
    if (path.empty()) return Error(ErrorCode::invalid_argument, "a path is empty");
    BackupSource source{path, normal_components(as_path.empty() ? path : as_path)};
    // A path that leads out of the current directory has no relative place in a tree.
    if (!source.tree_path.empty() && source.tree_path.front() == "..")
      source = {absolute_path(path), normal_components(absolute_path(path))};
    // The plan compares the two to know which directories above are real.
    if (as_path.empty() && path.starts_with('/')) source.path = absolute_path(path);
    if (source.path.size() > 1 && source.path.ends_with('/')) source.path.pop_back();
    out.push_back(std::move(source));
  }
  return without_overlap(std::move(out));
}

Result<std::vector<std::string>> read_paths(const std::string& file) {
  KIN_TRY_ASSIGN(const Bytes bytes, read_file(file == "-" ? "/dev/stdin" : file, kMostListBytes));
  std::vector<std::string> out;
  std::string_view text = as_text(bytes);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.empty() && !line.starts_with('#')) out.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace kin::cmd
