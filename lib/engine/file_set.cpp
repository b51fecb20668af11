#include "lib/engine/file_set.h"

#include "lib/base/mutex.h"
#include "lib/base/text.h"
#include "lib/base/worker_pool.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kin {
namespace {

constexpr std::size_t kPrintBatchFiles = 32, kPrintBatches = 64;

const char* name_of_type(NodeType type) {
  switch (type) {
    case NodeType::symlink:
      return "a symbolic link";
    case NodeType::fifo:
      return "a FIFO";
    case NodeType::socket:
      return "a socket";
    default:
      return "a device";
  }
}

}  // namespace

std::string_view file_suffix(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.find_last_of('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

Result<std::vector<ComparedFile>> find_files(const WalkOptions& sources, const FileRules& rules,
                                             const OnSkippedFile& on_skipped, const std::stop_token& stop) {
  std::vector<ComparedFile> out;
  std::set<std::string> named;
  for (const BackupSource& source : sources.sources) named.insert(source.path);
  const auto is_wanted = [&](const WalkEntry& entry) {
    if (entry.node.size < rules.least_bytes || entry.node.size > rules.most_bytes) return false;
    const std::string_view suffix = file_suffix(entry.path);
    return rules.suffixes.empty() ||
           std::find(rules.suffixes.begin(), rules.suffixes.end(), suffix) != rules.suffixes.end();
  };
  Walker walker(
      sources, nullptr, std::nullopt,
      [&](WalkEntry entry) {
        if (entry.kind == WalkEntry::Kind::file && is_wanted(entry))
          out.push_back({std::move(entry.path), entry.node.size, entry.node.device, entry.node.inode});
        else if (entry.kind == WalkEntry::Kind::other && named.contains(entry.path))
          on_skipped(entry.path, Error(ErrorCode::invalid_argument, printable(entry.path) + " is " +
                                                                        name_of_type(entry.node.type) +
                                                                        ", and only files are compared"));
        return !stop.stop_requested();
      },
      on_skipped);
  auto walked = walker.walk();
  if (stop.stop_requested()) return interrupted();
  if (!walked && walked.error().code() == ErrorCode::not_found)
    return Error(ErrorCode::not_found, "nothing to compare: none of the paths can be read");
  KIN_TRY(std::move(walked));
  return out;
}

Result<PrintedFiles> print_files(std::vector<ComparedFile> files, const Detector& detector, unsigned jobs,
                                 const OnSkippedFile& on_skipped, const std::stop_token& stop) {
  std::vector<std::optional<Print>> prints(files.size());
  Mutex mutex;
  const auto print_one = [&](std::size_t at) -> Result<Print> {
    KIN_TRY_ASSIGN(const auto content, FileContent::open_found(files[at].path, stop));
    KIN_TRY_ASSIGN(Print print, detector.print(*content, files[at].path));
    return print;
  };
  {
    WorkerPool pool(jobs, kPrintBatches);
    for (std::size_t first = 0; first < files.size(); first += kPrintBatchFiles) {
      if (stop.stop_requested()) break;
      pool.submit(
          [&, first]() -> Result<void> {
            for (std::size_t at = first; at < std::min(first + kPrintBatchFiles, files.size()); ++at) {
              if (stop.stop_requested()) return interrupted();
              auto print = print_one(at);
              if (print) {
                prints[at] = *std::move(print);
              } else if (stop.stop_requested()) {
                return interrupted();
              } else {
                MutexLock lock(mutex);
                on_skipped(files[at].path, print.error());
              }
            }
            return {};
          },
          1);
    }
    KIN_TRY(pool.wait());
  }
  if (stop.stop_requested()) return interrupted();
  PrintedFiles out;
  for (std::size_t at = 0; at < files.size(); ++at) {
    if (!prints[at]) continue;
    out.bytes += prints[at]->file_bytes;
    out.files.push_back(std::move(files[at]));
    out.prints.push_back(*std::move(prints[at]));
  }
  return out;
}

}  // namespace kin
