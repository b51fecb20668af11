// The options of the commands that compare files: which files, and by which detector.
#pragma once

#include "cmd/context.h"
#include "lib/engine/file_set.h"

#include <string>
#include <vector>

namespace kin::cmd {

struct FileOptions {
  std::vector<std::string> paths, exclude, suffixes;
  std::string min_size, max_size, method = "features";
  bool one_file_system = false;
  double min_similarity = -1;  // in percent; below 0: what is usual for the method
};

// All but PATH, which each command names in its own way.
void add_file_options(CLI::App& app, FileOptions& options);
void add_method_option(CLI::App& app, FileOptions& options);
// Checks of CLI11, which lets "nan" pass by ranges, reads 010 as 8, and takes what is too large.
std::string is_a_number(const std::string& text);
std::string is_a_whole_number(const std::string& text);

Result<WalkOptions> file_sources(const std::vector<std::string>& paths, const FileOptions& options);
Result<FileRules> file_rules(const FileOptions& options);
std::unique_ptr<Detector> make_detector(const FileOptions& options);
double least_similarity(const FileOptions& options, const Detector& detector);  // as a part of 1
// In the local cache, or where temporary files are, with --no-cache.
MakeKeyStore key_stores(const Context& context);

// Tells of each file that is left out, and remembers that there was one.
class SkippedFiles {
 public:
  explicit SkippedFiles(Context& context) : context_(context) {}

  OnSkippedFile told() {
    return [this](const std::string&, const Error& error) {
      ++count_;
      context_.warn(error.message());
    };
  }
  std::uint64_t count() const { return count_; }
  ExitCode exit_code() const { return count_ > 0 ? ExitCode::incomplete : ExitCode::ok; }

 private:
  Context& context_;
  std::uint64_t count_ = 0;
};

// "79"; what is less than all is never "100".
std::string percent_number(double part);
std::string percent_text(double part);  // "79 %"

}  // namespace kin::cmd
