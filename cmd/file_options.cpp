#include "cmd/file_options.h"

#include "cmd/backup_sources.h"
#include "lib/base/text.h"
#include "store/rocks_key_store.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>

namespace kin::cmd {

namespace {

template <class Number>
bool is_all_of(const std::string& text, Number& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string is_a_number(const std::string& text) {
  double number = 0;
  return is_all_of(text, number) && std::isfinite(number) ? "" : printable(text) + " is not a number";
}

std::string is_a_whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const bool is_plain = text == "0" || !text.starts_with('0');  // which would make it octal
  return is_plain && is_all_of(text, number)
             ? ""
             : fmt::format("{} is not a whole number from 0 to {}", printable(text), UINT64_MAX);
}

void add_method_option(CLI::App& app, FileOptions& options) {
  std::vector<std::string> names;
  for (const DetectorEntry& entry : all_detectors()) names.emplace_back(entry.name);
  app.add_option("--method", options.method, "how files are compared (default features)")
      ->check(CLI::IsMember(names));
  app.add_option("--min-similarity", options.min_similarity, "in percent (default 25; simihash 90)")
      ->check(CLI::Range(0.0, 1000.0))
      ->check(is_a_number);
}

void add_file_options(CLI::App& app, FileOptions& options) {
  add_method_option(app, options);
  app.add_option("-e,--exclude", options.exclude, "leave out what matches this pattern")
      ->allow_extra_args(false);
  app.add_option("--suffix", options.suffixes, "only files whose names end so (.c,.h)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--min-size", options.min_size, "only files of at least this size (default 1)");
  app.add_option("--max-size", options.max_size, "only files of at most this size (500k, 2G)");
  app.add_flag("-x,--one-file-system", options.one_file_system, "do not cross into other file systems");
}

Result<WalkOptions> file_sources(const std::vector<std::string>& paths, const FileOptions& options) {
  WalkOptions out;
  KIN_TRY_ASSIGN(out.sources, backup_sources(paths, ""));
  for (const std::string& pattern : options.exclude) out.excludes.add(pattern);
  out.one_file_system = options.one_file_system;
  out.attributes = false;
  return out;
}

Result<FileRules> file_rules(const FileOptions& options) {
  FileRules out;
  if (!options.min_size.empty()) {
    KIN_TRY_ASSIGN(out.least_bytes, parse_size(options.min_size));
  }
  if (!options.max_size.empty()) {
    KIN_TRY_ASSIGN(out.most_bytes, parse_size(options.max_size));
  }
  for (const std::string& suffix : options.suffixes)
    out.suffixes.push_back(suffix.empty() || suffix.starts_with('.') ? suffix : "." + suffix);
  return out;
}

std::unique_ptr<Detector> make_detector(const FileOptions& options) {
  return find_detector(options.method)->make();
}

double least_similarity(const FileOptions& options, const Detector& detector) {
  return options.min_similarity < 0 ? detector.usual_similarity() : options.min_similarity / 100;
}

MakeKeyStore key_stores(const Context& context) {
  std::error_code failed;
  const std::string parent = context.options.no_cache ? std::filesystem::temp_directory_path(failed).string()
                                                      : cache_directory(context);
  if (failed)
    return []() -> Result<std::unique_ptr<KeyStore>> {
      return Error(ErrorCode::io, "no place for temporary files: TMPDIR is not a directory that can be used");
    };
  return [parent] { return store::make_rocks_key_store(parent); };
}

std::string percent_number(double part) {
  const double percent = 100 * part;
  return fmt::format("{:.0f}", percent < 100 && percent > 99 ? 99 : percent);
}

std::string percent_text(double part) { return percent_number(part) + " %"; }

}  // namespace kin::cmd
