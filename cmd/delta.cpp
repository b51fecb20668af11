#include "cmd/delta_files.h"
#include "lib/base/text.h"
#include "lib/delta/file_vcdiff_base.h"

#include <unistd.h>

namespace kin::cmd {
namespace {

struct DeltaOptions {
  std::string base, target, output;
  int level = 3;
};

Result<ExitCode> run_delta(Context& context, const DeltaOptions& options) {
  KIN_TRY_ASSIGN(const auto base, FileVcdiffBase::open(options.base));
  KIN_TRY_ASSIGN(const auto target, PieceReader::open(context, options.target, kVcdiffWindowBytes));
  if (options.output == "-" && ::isatty(STDOUT_FILENO) != 0)
    return Error(ErrorCode::invalid_argument,
                 "a delta is nothing for a terminal: send it to a file or a pipe");
  KIN_TRY_ASSIGN(const auto output, OutputFile::open(context, options.output, {&base->fd(), &target->fd()}));
  VcdiffOptions encoding;
  encoding.level = options.level;
  encoding.checksums = true;
  KIN_TRY(encode_vcdiff(*base, target->read(), output->write(), encoding));
  KIN_TRY(output->commit());
  if (output->is_stdout()) return ExitCode::ok;
  const std::uint64_t from = target->bytes(), to = output->bytes();
  context.print(fmt::format("a delta of {} for {} ({:.2f} %)", human_bytes(to), human_bytes(from),
                            from > 0 ? 100.0 * static_cast<double>(to) / static_cast<double>(from) : 100.0));
  context.json("summary", {{"base_bytes", base->size()}, {"target_bytes", from}, {"delta_bytes", to}});
  return ExitCode::ok;
}

Action define_delta(CLI::App& app) {
  auto options = std::make_shared<DeltaOptions>();
  app.add_option("BASE", options->base, "the file that the other side has")->required();
  app.add_option("TARGET", options->target, "the file to describe ('-': stdin)")->required();
  app.add_option("-o,--output", options->output, "where the delta goes ('-': stdout)")->required();
  app.add_option("--level", options->level, "1: fast, to 9: small (default 3)")->check(CLI::Range(1, 9));
  return [options](Context& context) { return run_delta(context, *options); };
}

}  // namespace

extern const Command kDelta{"delta", "write the difference between two files (VCDIFF)", define_delta};

}  // namespace kin::cmd
