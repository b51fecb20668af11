#include "store/copy.h"

#include "cmd/parity_report.h"
#include "cmd/snapshot_options.h"
#include "lib/base/text.h"

#include <algorithm>
#include <chrono>

namespace kin::cmd {
namespace {

struct CopyOptions {
  RepositoryPlace from;
  store::SnapshotFilter filter;
  std::vector<std::string> ids;
  bool dry_run = false;
};

// Those that were named, or that the filters admit, the oldest first.
Result<std::vector<store::StoredSnapshot>> choose(Context& context, store::Repository& source,
                                                  const CopyOptions& options, bool& damaged) {
  if (options.ids.empty())
    return store::load_snapshots(source, options.filter, [&](const Error& error) {
      context.warn(error.message());
      damaged = true;
    });
  std::vector<store::StoredSnapshot> out;
  for (const std::string& text : options.ids) {
    KIN_TRY_ASSIGN(store::StoredSnapshot named, store::find_snapshot(source, text, options.filter));
    const bool is_new =
        std::none_of(out.begin(), out.end(), [&](const auto& one) { return one.id == named.id; });
    if (is_new) out.push_back(std::move(named));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.snapshot.time < b.snapshot.time; });
  return out;
}

// A few times a second.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context) : context_(context) {}
  ~ProgressLine() { context_.progress(""); }

  void show(const store::CopyProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!context_.shows_progress() || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    context_.progress(fmt::format("snapshot {} of {}: {}, read {} of at most {}", progress.snapshot,
                                  progress.snapshots, counted(progress.copied.objects, "object"),
                                  human_bytes(progress.copied.read_bytes), human_bytes(progress.most_bytes)));
  }

 private:
  Context& context_;
  std::chrono::steady_clock::time_point next_ = {};
};

store::CopyObserver observer_for(Context& context, ProgressLine& line, bool& damaged) {
  store::CopyObserver observer;
  observer.on_copied = [&context](const store::StoredSnapshot& stored, const SnapshotId& copy) {
    context.print(fmt::format("snapshot {} of {} is copied as {}", stored.id.short_hex(),
                              local_time(stored.snapshot.time), copy.short_hex()));
    context.json("copied", {{"source_snapshot_id", stored.id.hex()}, {"snapshot_id", copy.hex()}});
  };
  observer.on_there = [&context](const store::StoredSnapshot& stored, const SnapshotId& copy) {
    if (context.options.verbose > 0)
      context.print(fmt::format("snapshot {} is there as {}", stored.id.short_hex(), copy.short_hex()));
    context.json("present", {{"source_snapshot_id", stored.id.hex()}, {"snapshot_id", copy.hex()}});
  };
  observer.on_left_out = [&context](const store::StoredSnapshot& stored, const Error& why) {
    context.warn(fmt::format("snapshot {} cannot be copied: {}", stored.id.short_hex(), why.message()));
  };
  observer.on_damage = [&context, &damaged](const Error& error) {
    context.warn(error.message());
    damaged = true;
  };
  observer.on_progress = [&line](const store::CopyProgress& progress) { line.show(progress); };
  return observer;
}

void tell(Context& context, const store::CopyReport& report, bool dry) {
  const store::CopiedContent& content = report.content;
  context.print(fmt::format("{} {}, {} there already{}", counted(report.copied, "snapshot"),
                            dry ? "would be copied" : "copied", report.there,
                            report.left_out == 0 ? "" : fmt::format(", {} left out", report.left_out)));
  if (dry)
    context.print(fmt::format("to be read: {} of the source at most", human_bytes(content.read_bytes)));
  else if (report.copied > 0)
    context.print(fmt::format(
        "new: {}, {}, which take {}; {} kept as they were{}", counted(content.objects, "object"),
        human_bytes(content.bytes), human_bytes(content.stored_bytes), counted(content.deltas_kept, "delta"),
        content.deltas_replaced == 0
            ? ""
            : fmt::format(", {} made anew without their base", content.deltas_replaced)));
  context.json("summary", {{"dry_run", dry},
                           {"copied", report.copied},
                           {"present", report.there},
                           {"left_out", report.left_out},
                           {"read_bytes", content.read_bytes},
                           {"data_objects", content.objects},
                           {"data_added", content.bytes},
                           {"data_added_packed", content.stored_bytes},
                           {"deltas_kept", content.deltas_kept},
                           {"deltas_replaced", content.deltas_replaced}});
}

Result<ExitCode> run_copy(Context& context, const CopyOptions& options) {
  if (options.from.location.empty())
    return Error(ErrorCode::invalid_argument,
                 "from which repository? give --from DIR, or KIN_FROM_REPOSITORY");
  auto opened = open_repository_at(context, options.from);
  if (!opened) return std::move(opened).error().context("the source");
  const auto source = *std::move(opened);
  KIN_TRY_ASSIGN(const auto target, open_repository(context));
  bool damaged = false;
  KIN_TRY_ASSIGN(const auto snapshots, choose(context, *source, options, damaged));
  ProgressLine line(context);
  const store::CopyObserver observer = observer_for(context, line, damaged);
  store::Copy copy(*source, *target, observer);
  KIN_TRY_ASSIGN(const store::CopyReport report, options.dry_run ? copy.rehearse(snapshots, context.stop())
                                                                 : copy.run(snapshots, context.stop()));
  context.progress("");
  tell(context, report, options.dry_run);
  const bool is_protected =
      options.dry_run || report.copied == 0 || make_parity_for_new_packs(context, *target);
  return report.left_out > 0 || damaged || !is_protected ? ExitCode::incomplete : ExitCode::ok;
}

Action define_copy(CLI::App& app) {
  auto options = std::make_shared<CopyOptions>();
  options->from.password_variable = "KIN_FROM_PASSWORD";
  app.add_option("--from", options->from.location, "the repository to copy from")
      ->envname("KIN_FROM_REPOSITORY");
  app.add_option("--from-password-file", options->from.password_file,
                 "the file whose first line is its password")
      ->envname("KIN_FROM_PASSWORD_FILE");
  app.add_option("--from-password-command", options->from.password_command,
                 "the shell command that prints its password")
      ->envname("KIN_FROM_PASSWORD_COMMAND");
  add_filter_options(app, options->filter);
  app.add_flag("-n,--dry-run", options->dry_run, "only tell what would be copied");
  app.add_option("SNAPSHOT", options->ids, "only these (ids or their first digits, or latest)");
  return [options](Context& context) { return run_copy(context, *options); };
}

}  // namespace

extern const Command kCopy{"copy", "copy snapshots from another repository into this one", define_copy};

}  // namespace kin::cmd
