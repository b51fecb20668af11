#include "cmd/backup_sources.h"

#include "lib/base/file.h"
#include "lib/base/text.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <unistd.h>

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

// "link/../x" lies beside what the link points to, not beside the link: where names alone would lead
// elsewhere, what comes before the last ".." is what the kernel finds there. (restic goes by the names, and
// so saves another file than `cat` shows.) Nothing if the kernel finds nothing there.
std::optional<std::string> resolve_dots(const std::string& path) {
  std::filesystem::path before, after;
  for (const std::filesystem::path& name : std::filesystem::path(path)) {
    after /= name;
    if (name == "..") before /= std::exchange(after, {});
  }
  if (before.empty()) return path;
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(before, failed);
  if (failed) return std::nullopt;
  if (std::filesystem::equivalent(before.lexically_normal(), real, failed)) return path;
  return (real / after).string();
}

// By its names, where the kernel does not let us look: no path at all would be one that holds everything.
std::vector<std::string> real_components(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  return failed ? normal_components(absolute_path(path)) : path_components(real.string());
}

// A link with a slash behind it is the directory that it leads to, and a file with one is nothing: so it is
// for the kernel, and for tar. The walk keeps to it where the slash stays.
bool names_a_directory(const std::string& path) {
  return path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
}

// Where sources really are, by names. The last name stays, since a link is saved as a link.
class RealPlaces {
 public:
  std::vector<std::string> of(const BackupSource& source) {
    const std::size_t name_at = source.path.rfind('/') + 1;  // 0 if there is none
    const std::string name = source.path.substr(name_at);
    if (source.tree_path.empty() || !is_safe_name(name)) return real_components(source.path);
    // A list of a million files has most of them in the same directories.
    std::string above = name_at == 0 ? "." : source.path.substr(0, name_at);
    if (above != above_) {
      real_above_ = real_components(above);
      above_ = std::move(above);
    }
    std::vector<std::string> out = real_above_;
    out.push_back(name);
    return out;
  }

 private:
  std::string above_;
  std::vector<std::string> real_above_;
};

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

Result<Bytes> read_stdin(const std::stop_token& stop) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  Bytes out;
  for (std::size_t size = 0;;) {
    out.resize(size + kPieceBytes);
    KIN_TRY_ASSIGN(const std::size_t more,
                   read_pipe(STDIN_FILENO, std::span(out).subspan(size), "stdin", stop));
    size += more;
    if (size > kMostListBytes)
      return Error(ErrorCode::io, fmt::format("stdin has more than {} bytes", kMostListBytes));
    if (more == kPieceBytes) continue;
    out.resize(size);
    return out;
  }
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
  std::vector<BackupSource> out, missing;
  for (const std::string& given : paths) {
    if (given.empty()) return Error(ErrorCode::invalid_argument, "a path is empty");
    const std::optional<std::string> resolved = resolve_dots(given);
    if (!resolved) {
      // As it was given, for the walk to name and skip: by the names alone it might be another file.
      missing.push_back({given, normal_components(as_path.empty() ? absolute_path(given) : as_path)});
      continue;
    }
    const std::string& path = *resolved;
    BackupSource source{path, normal_components(as_path.empty() ? path : as_path)};
    // A path that leads out of the current directory has no relative place in a tree.
    if (!source.tree_path.empty() && source.tree_path.front() == "..")
      source = {absolute_path(path), normal_components(absolute_path(path))};
    // The plan compares the two to know which directories above are real.
    if (as_path.empty() && path.starts_with('/')) source.path = absolute_path(path);
    while (source.path.ends_with("/.")) source.path.pop_back();
    if (names_a_directory(path) && !source.path.ends_with('/')) source.path += '/';
    std::error_code ignored;
    if (source.tree_path.empty() && std::filesystem::exists(path, ignored) &&
        !std::filesystem::is_directory(path, ignored))
      return Error(ErrorCode::invalid_argument,
                   fmt::format("{} is no directory, and needs a name in the snapshot: --as-path /NAME",
                               printable(path)));
    out.push_back(std::move(source));
  }
  KIN_TRY_ASSIGN(out, without_overlap(std::move(out)));
  out.insert(out.end(), missing.begin(), missing.end());
  return out;
}

// A repository that is backed up into itself would be read while it is written, and grow with every run.
Result<void> leave_out_own(std::vector<BackupSource>& sources, Context& context) {
  const std::vector<std::string> repository = real_components(repository_location(context)),
                                 cache = real_components(cache_directory(context));
  RealPlaces places;
  bool below = false;
  std::erase_if(sources, [&](const BackupSource& source) {
    const std::vector<std::string> place = places.of(source);
    const bool in_repository = lies_in(place, repository), in_cache = lies_in(place, cache);
    if (in_repository || in_cache)
      context.warn(fmt::format("{} is left out: it belongs to {}", printable(source.path),
                               in_repository ? "the repository that is written to" : "kin's cache"));
    below |= !in_repository && lies_in(repository, place);
    return in_repository || in_cache;
  });
  if (sources.empty())
    return Error(ErrorCode::invalid_argument, "nothing to back up: kin does not save its own files");
  if (std::error_code failed; below && std::filesystem::exists(repository_location(context), failed))
    context.print(fmt::format("the repository {} is left out", printable(repository_location(context))));
  return {};
}

std::vector<std::string> snapshot_paths(const std::vector<BackupSource>& sources,
                                        const std::string& as_path) {
  std::vector<std::string> out;
  for (const BackupSource& source : sources)
    out.push_back(absolute_path(as_path.empty() ? source.path : "/" + as_path));
  std::sort(out.begin(), out.end());
  return out;
}

std::string disk_path(const std::vector<BackupSource>& sources, const std::string& tree_path) {
  for (const BackupSource& source : sources) {
    std::string place;
    for (const std::string& name : source.tree_path) place += "/" + name;
    if (tree_path == place || tree_path.starts_with(place + "/"))
      return absolute_path(source.path + tree_path.substr(place.size()));
  }
  return tree_path;
}

Result<std::vector<std::string>> read_paths(const std::string& file, const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const Bytes bytes, file == "-" ? read_stdin(stop) : read_file(file, kMostListBytes));
  std::vector<std::string> out;
  std::string_view text = as_text(bytes);
  if (text.find('\0') != std::string_view::npos)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("{} holds a NUL byte: paths are separated by line ends", printable(file)));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.empty() && !line.starts_with('#')) out.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace kin::cmd
