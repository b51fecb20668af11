#include "cmd/delta_files.h"
#include "lib/base/text.h"
#include "lib/delta/file_vcdiff_base.h"

namespace kin::cmd {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

struct PatchOptions {
  std::string base, delta, output;
};

Result<ExitCode> run_patch(Context& context, const PatchOptions& options) {
  KIN_TRY_ASSIGN(const auto base, FileVcdiffBase::open(options.base));
  KIN_TRY_ASSIGN(const auto delta, PieceReader::open(context, options.delta, kPieceBytes));
  KIN_TRY_ASSIGN(const auto output, OutputFile::open(context, options.output, {&base->fd(), &delta->fd()}));
  auto target = decode_vcdiff(*base, delta->read(), output->write());
  if (!target) {
    const ErrorCode code = target.error().code();
    if (code != ErrorCode::corrupt && code != ErrorCode::wrong_base && code != ErrorCode::unsupported)
      return std::move(target).error();
    return std::move(target).error().context("cannot apply " + printable(options.delta));
  }
  KIN_TRY(output->commit());
  if (!target->checked)
    context.warn(printable(options.delta) +
                 " has no checksums, so nobody can tell whether this was the right base");
  if (output->is_stdout()) return ExitCode::ok;
  context.print(
      fmt::format("{} from a delta of {}", human_bytes(target->bytes), human_bytes(delta->bytes())));
  context.json("summary", {{"base_bytes", base->size()},
                           {"delta_bytes", delta->bytes()},
                           {"target_bytes", target->bytes},
                           {"checked", target->checked}});
  return ExitCode::ok;
}

Action define_patch(CLI::App& app) {
  auto options = std::make_shared<PatchOptions>();
  app.add_option("BASE", options->base, "the file that the delta was made from")->required();
  app.add_option("FILE", options->delta, "the delta, by kin or the xdelta3 program ('-': stdin)")->required();
  app.add_option("-o,--output", options->output, "where the result goes ('-': stdout)")->required();
  return [options](Context& context) { return run_patch(context, *options); };
}

}  // namespace

extern const Command kPatch{"patch", "apply a delta (VCDIFF) to its base", define_patch};

}  // namespace kin::cmd
