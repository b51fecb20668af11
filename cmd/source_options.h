// The options that say what is to be read, and how it is looked into: of backup and estimate.
#pragma once

#include "cmd/context.h"
#include "lib/container/container_format.h"
#include "lib/engine/walker.h"

#include <string>
#include <vector>

namespace kin::cmd {

struct SourceOptions {
  std::vector<std::string> paths, files_from;
  std::vector<std::string> exclude, iexclude, exclude_file, iexclude_file, exclude_if_present;
  std::string exclude_larger_than, effort = "normal";
  bool exclude_caches = false, one_file_system = false, no_unpack = false;
  std::vector<std::string> unpack_only;
};

// `path_help`: what PATH is.
void add_source_options(CLI::App& app, SourceOptions& options, const char* path_help);

// `as_path`: where the single path goes in the snapshot. Empty: nowhere else.
Result<WalkOptions> walk_options(const SourceOptions& options, const std::string& as_path, Context& context);

// The formats that are opened unless told otherwise: those that cost much with the highest effort only.
std::vector<ContainerFormat> formats_by_effort(const std::string& effort);

// The formats of containers that are to be opened.
Result<std::vector<ContainerFormat>> chosen_formats(const SourceOptions& options);

}  // namespace kin::cmd
