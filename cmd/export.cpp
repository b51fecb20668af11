#include "cmd/archive_tree.h"
#include "cmd/output_file.h"
#include "cmd/snapshot_options.h"

#include <unistd.h>

namespace kin::cmd {
namespace {

struct ExportOptions {
  store::SnapshotFilter filter;
  std::string snapshot, file, format;
  bool force = false;
};

Result<formats::ArchiveKind> chosen_kind(const ExportOptions& options) {
  if (options.file == "-" && options.format.empty())
    return Error(ErrorCode::invalid_argument, "stdout has no name that tells the format: give --format");
  const std::string& name = options.format.empty() ? options.file : options.format;
  if (const auto kind = formats::archive_kind(name)) return *kind;
  return Error(ErrorCode::invalid_argument,
               fmt::format("{} does not tell a format that kin writes{}; these it does: {}", printable(name),
                           options.format.empty() ? " (give --format)" : "", formats::known_archive_kinds()));
}

void report(Context& context, const ExportOptions& options, const ArchiveCounts& counts,
            const formats::ArchiveKind& kind, std::uint64_t archive_bytes, double seconds) {
  context.print(fmt::format("exported {} files, {} directories, {} others: {} as {}, {} in {}",
                            grouped(counts.files), grouped(counts.directories), grouped(counts.others),
                            human_bytes(counts.bytes), printable(options.file), human_bytes(archive_bytes),
                            human_duration(seconds)));
  context.json("summary", {{"files_exported", counts.files},
                           {"dirs_exported", counts.directories},
                           {"others_exported", counts.others},
                           {"bytes_exported", counts.bytes},
                           {"archive_size", archive_bytes},
                           {"format", kind.form->name},
                           {"compression", kind.compression == nullptr ? "none" : kind.compression},
                           {"not_kept", lost_json(counts)},
                           {"seconds_elapsed", seconds}});
}

Result<ExitCode> run_export(Context& context, const ExportOptions& options) {
  if (options.file.empty())
    return Error(ErrorCode::invalid_argument, "--file is empty; it has to name a file");
  KIN_TRY_ASSIGN(const formats::ArchiveKind kind, chosen_kind(options));
  if (options.file == "-" && ::isatty(STDOUT_FILENO) != 0)
    return Error(ErrorCode::invalid_argument,
                 "this would be an archive, and stdout is a terminal: send it to a file or a pipe");
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const TreePlace place, find_place(*repository, options.snapshot, options.filter));
  KIN_TRY_ASSIGN(const auto output, OutputFile::open(context, options.file, {},
                                                     options.force ? OutputFile::IfThere::replace
                                                                   : OutputFile::IfThere::refuse));
  Progress progress(context);
  const SnapshotSummary& summary = place.snapshot.snapshot.summary;
  if (place.path.empty()) progress.set_total(summary.files, summary.bytes);
  // Lines of JSON would be in the archive.
  ArchiveTree archive(context, *repository, kind, output->write(),
                      output->is_stdout() && context.options.json ? nullptr : &progress);
  // Names start where PATH does, as for restore: what is in a directory, or one file.
  KIN_TRY(place.node.type == NodeType::directory ? archive.add_below(place.node.subtree, "")
                                                 : archive.add(place.node, "/" + place.node.name));
  KIN_TRY(archive.finish());
  KIN_TRY(output->commit());
  const ArchiveCounts& counts = archive.counts();
  if (!output->is_stdout()) report(context, options, counts, kind, output->bytes(), progress.seconds());
  if (const std::string lost = lost_text(counts); !lost.empty())
    context.warn(fmt::format("{} does not hold everything; not kept: {}", kind.form->name, lost));
  return counts.special_files > 0 ? ExitCode::incomplete : ExitCode::ok;
}

Action define_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("SNAPSHOT", options->snapshot,
                 "an id, its first digits, or 'latest'; with :PATH only what is there")
      ->required();
  app.add_option("-f,--file", options->file, "the archive to write ('-': stdout); its name tells the format")
      ->required();
  app.add_option("--format", options->format, "the format, as names end: tar.zst, zip, 7z ...");
  app.add_flag("--force", options->force, "replace a file that is there");
  add_filter_options(app, options->filter);
  return [options](Context& context) { return run_export(context, *options); };
}

}  // namespace

extern const Command kExport{"export", "write a snapshot as an archive: tar, zip, cpio, 7z", define_export};

}  // namespace kin::cmd
