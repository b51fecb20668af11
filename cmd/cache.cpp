#include "cmd/context.h"
#include "lib/base/text.h"
#include "store/cache_directory.h"

#include <filesystem>

namespace kin::cmd {
namespace {

struct CacheEntry {
  std::string path;
  std::uint64_t bytes = 0;
  Timestamp used;
};

// Directory errors end the listing early; what is not listed is not removed.
std::vector<CacheEntry> list_caches(const std::string& directory) {
  std::vector<CacheEntry> out;
  std::error_code error;
  for (const auto& cache : std::filesystem::directory_iterator(directory, error)) {
    // Only what is named like a repository is a cache of ours.
    if (!store::is_file_name(cache.path().filename().string())) continue;
    CacheEntry entry{cache.path().string(), 0, {}};
    for (const auto& file : std::filesystem::recursive_directory_iterator(cache, error)) {
      std::error_code ignored;
      if (!file.is_regular_file(ignored)) continue;
      const auto size = file.file_size(ignored);
      if (!ignored) entry.bytes += size;
      const auto written = std::chrono::file_clock::to_sys(file.last_write_time(ignored));
      entry.used.seconds = std::max<std::int64_t>(
          entry.used.seconds,
          std::chrono::duration_cast<std::chrono::seconds>(written.time_since_epoch()).count());
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Result<ExitCode> run_cache(Context& context, bool cleanup, unsigned max_age_days) {
  const std::string directory = cache_directory(context);
  if (cleanup) store::sweep_temporary_caches(directory);
  const std::vector<CacheEntry> entries = list_caches(directory);
  const std::int64_t oldest = now().seconds - std::int64_t{max_age_days} * 86400;
  if (!entries.empty())
    context.print_always(fmt::format("{:<12}  {:<19}  {:>12}", "Repository", "Last used", "Size"));
  for (const CacheEntry& entry : entries) {
    const std::string name = std::filesystem::path(entry.path).filename().string();
    const bool old = entry.used.seconds < oldest;
    bool removed = false;
    if (cleanup && old) {
      KIN_TRY_ASSIGN(removed, store::remove_cache(entry.path));
    }
    context.print_always(fmt::format("{:<12}  {:<19}  {:>12}{}", name.substr(0, 12), local_time(entry.used),
                                     human_bytes(entry.bytes),
                                     removed          ? "  removed"
                                     : cleanup && old ? "  in use"
                                     : old            ? "  old"
                                                      : ""));
    context.json("cache", {{"repository_id", name},
                           {"last_used", iso_time(entry.used)},
                           {"bytes", entry.bytes},
                           {"old", old},
                           {"removed", removed}});
  }
  context.print(
      fmt::format("{} cache{} in {}", entries.size(), entries.size() == 1 ? "" : "s", printable(directory)));
  return ExitCode::ok;
}

Action define_cache(CLI::App& app) {
  struct CacheOptions {
    bool cleanup = false;
    unsigned max_age_days = 30;
  };
  auto options = std::make_shared<CacheOptions>();
  app.add_flag("--cleanup", options->cleanup, "remove those not used for --max-age days");
  app.add_option("--max-age", options->max_age_days, "days without use that make a cache old")
      ->capture_default_str();
  return [options](Context& context) { return run_cache(context, options->cleanup, options->max_age_days); };
}

}  // namespace

extern const Command kCache{"cache", "list or remove local caches", define_cache};

}  // namespace kin::cmd
