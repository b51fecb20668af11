#include "cmd/archive_tree.h"
#include "cmd/snapshot_options.h"
#include "lib/base/file.h"
#include "lib/engine/path_filter.h"

#include <fcntl.h>
#include <ostream>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct DumpOptions {
  store::SnapshotFilter filter;
  std::string snapshot, path, archive = "tar", target;
};

// Stdout, or a new file that goes away again unless commit() is reached: half a file looks too much like a
// whole one.
class Output {
 public:
  static Result<std::unique_ptr<Output>> open(Context& context, const std::string& target) {
    std::unique_ptr<Output> output(new Output(context));
    if (target.empty()) return output;
    output->fd_ = Fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!output->fd_ && errno == EEXIST)
      return Error(ErrorCode::invalid_argument,
                   printable(target) + " is there already; kin dump does not overwrite");
    if (!output->fd_) return errno_error("cannot make", target);
    output->target_ = target;
    return output;
  }
  ~Output() {
    if (!target_.empty()) ::unlink(target_.c_str());
  }

  Result<void> write(ByteView bytes) {
    if (!target_.empty()) return write_all(fd_.get(), bytes, target_);
    context_.raw_out().write(reinterpret_cast<const char*>(bytes.data()),
                             static_cast<std::streamsize>(bytes.size()));
    return context_.still_heard();
  }
  Result<void> commit() {
    if (target_.empty()) {
      context_.raw_out().flush();
      return context_.still_heard();
    }
    KIN_TRY(fd_.close(target_));
    target_.clear();
    return {};
  }

 private:
  explicit Output(Context& context) : context_(context) {}

  Context& context_;
  Fd fd_;
  std::string target_;
};

Result<ExitCode> run_dump(Context& context, const DumpOptions& options) {
  std::string text = options.snapshot;
  if (!options.path.empty()) text += (text.find(':') == std::string::npos ? ":" : "/") + options.path;
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const TreePlace place, find_place(*repository, text, options.filter));
  const std::string shown = printable(place.path);
  const bool directory = place.node.type == NodeType::directory;
  if (!directory && place.node.type != NodeType::file)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("cannot dump {}: it is neither a file nor a directory but a {}", shown,
                             name_of(place.node.type)));
  if (directory && options.target.empty() && ::isatty(STDOUT_FILENO) != 0)
    return Error(ErrorCode::invalid_argument,
                 "this would be a tar archive, and stdout is a terminal: send it to a file or a pipe, or "
                 "name one by --target");

  KIN_TRY_ASSIGN(const auto output, Output::open(context, options.target));
  std::string lost;
  const ArchiveTree::Write write = [&](ByteView bytes) { return output->write(bytes); };
  if (!directory) {
    auto written = write_content(*repository, place.node, write, context.stop());
    if (!written) return std::move(written).error().context("cannot dump " + shown);
  } else {
    ArchiveTree dump(context, *repository, {&formats::tar_form(), nullptr}, write);
    // Names in the archive start where PATH does: SNAPSHOT:PATH makes that directory the root, as for
    // restore.
    std::string root;
    for (const std::string& name : path_components(options.path)) root += "/" + name;
    if (!root.empty()) KIN_TRY(dump.add(place.node, root));
    KIN_TRY(dump.add_below(place.node.subtree, root));
    KIN_TRY(dump.finish());
    lost = lost_text(dump.counts());
  }
  KIN_TRY(output->commit());
  if (!lost.empty()) context.warn("tar does not hold everything; not kept: " + lost);
  return ExitCode::ok;
}

Action define_dump(CLI::App& app) {
  auto options = std::make_shared<DumpOptions>();
  add_filter_options(app, options->filter);
  app.add_option("-a,--archive", options->archive, "the form in which a directory is written")
      ->check(CLI::IsMember({"tar"}));
  app.add_option("-t,--target", options->target, "a new file to write to, instead of stdout");
  app.add_option("SNAPSHOT", options->snapshot,
                 "an id, its first digits, or 'latest'; with :PATH that place in it")
      ->required();
  app.add_option("PATH", options->path, "a file, or a directory (default: everything)");
  return [options](Context& context) { return run_dump(context, *options); };
}

}  // namespace

extern const Command kDump{"dump", "write a file, or a directory as tar, to stdout", define_dump};

}  // namespace kin::cmd
