#include "cmd/source_options.h"

#include "cmd/backup_sources.h"
#include "formats/formats.h"
#include "lib/base/text.h"

#include <set>

namespace kin::cmd {

void add_source_options(CLI::App& app, SourceOptions& options, const char* path_help) {
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help)->allow_extra_args(false);
  };
  app.add_option("PATH", options.paths, path_help);
  list("--files-from", options.files_from, "a file with a path per line ('-': stdin)");
  list("-e,--exclude", options.exclude, "leave out what matches this pattern");
  list("--iexclude", options.iexclude, "the same, whatever the case of letters");
  list("--exclude-file", options.exclude_file, "a file with a pattern per line");
  list("--iexclude-file", options.iexclude_file, "the same, whatever the case of letters");
  app.add_flag("--exclude-caches", options.exclude_caches, "leave out directories with a CACHEDIR.TAG");
  list("--exclude-if-present", options.exclude_if_present,
       "leave out the contents of directories that hold FILE[:HEADER]");
  app.add_option("--exclude-larger-than", options.exclude_larger_than, "leave out larger files (500k, 2G)");
  app.add_flag("-x,--one-file-system", options.one_file_system, "do not cross into other file systems");
  app.add_option(
         "--effort", options.effort,
         "fast, normal or max: time spent on finding and encoding differences; max opens xz files too")
      ->check(CLI::IsMember({"fast", "normal", "max"}))
      ->capture_default_str();
  CLI::Option* const no_unpack =
      app.add_flag("--no-unpack", options.no_unpack, "store archives and other containers as they are");
  app.add_option("--unpack-only", options.unpack_only,
                 "open only containers of these types (gzip,zip,tar ...)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(no_unpack);
}

Result<WalkOptions> walk_options(const SourceOptions& options, const std::string& as_path, Context& context) {
  WalkOptions walk;
  std::vector<std::string> paths = options.paths;
  for (const std::string& file : options.files_from) {
    KIN_TRY_ASSIGN(const std::vector<std::string> more, read_paths(file, context.stop()));
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) return Error(ErrorCode::invalid_argument, "no path is given, and nothing else to read");
  KIN_TRY_ASSIGN(walk.sources, backup_sources(paths, as_path));
  KIN_TRY(leave_out_own(walk.sources, context));
  for (const std::string& pattern : options.exclude) walk.excludes.add(pattern);
  for (const std::string& pattern : options.iexclude) walk.excludes.add(pattern, true);
  for (const std::string& file : options.exclude_file) KIN_TRY(walk.excludes.add_file(file));
  for (const std::string& file : options.iexclude_file) KIN_TRY(walk.excludes.add_file(file, true));
  walk.exclude_caches = options.exclude_caches;
  walk.exclude_if_present = options.exclude_if_present;
  if (!options.exclude_larger_than.empty()) {
    KIN_TRY_ASSIGN(walk.exclude_larger_than, parse_size(options.exclude_larger_than));
  }
  walk.one_file_system = options.one_file_system;
  return walk;
}

std::vector<ContainerFormat> formats_by_effort(const std::string& effort) {
  std::vector<ContainerFormat> out;
  for (const ContainerFormat& format : formats::all().containers)
    if (!format.is_costly || effort == "max") out.push_back(format);
  return out;
}

Result<std::vector<ContainerFormat>> chosen_formats(const SourceOptions& options) {
  const auto all = formats::all().containers;
  if (options.no_unpack) return std::vector<ContainerFormat>();
  if (options.unpack_only.empty()) return formats_by_effort(options.effort);
  std::vector<ContainerFormat> chosen;
  std::set<std::string> wanted(options.unpack_only.begin(), options.unpack_only.end());
  for (const ContainerFormat& format : all)
    if (wanted.erase(format.name) > 0) chosen.push_back(format);
  if (wanted.empty()) return chosen;
  std::string known;
  for (const ContainerFormat& format : all)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  return Error(ErrorCode::invalid_argument, fmt::format("--unpack-only: kin does not know '{}'; it knows {}",
                                                        printable(*wanted.begin()), known));
}

}  // namespace kin::cmd
