// kin serve: the other end of kin sync, which starts it there.
#include "cmd/sync_end.h"
#include "lib/sync/exchange.h"

#include <unistd.h>

namespace kin::cmd {
namespace {

struct ServeOptions {
  SyncEndOptions end;
  bool stdio = false;
  std::string limit_rate;
};

Result<ExitCode> run_serve(Context& context, const ServeOptions& options) {
  if (!options.stdio) return Error(ErrorCode::invalid_argument, "serve speaks by --stdio only");
  sync::ExchangeOptions exchange;
  exchange.in = STDIN_FILENO;
  exchange.out = STDOUT_FILENO;
  if (!options.limit_rate.empty()) {
    KIN_TRY_ASSIGN(exchange.limit_bytes_per_second, parse_size(options.limit_rate));
  }
  // Why it cannot be is told to the other end, whose user it is.
  const auto refuse = [](const Error& error) {
    const Bytes frame = sync::encode_frame(sync::FrameType::error, as_bytes(error.message()));
    static_cast<void>(write_all(STDOUT_FILENO, frame, "stdout").has_value());
    return ExitCode::failed;
  };
  auto end = SyncEnd::open(context, options.end);
  if (!end) return refuse(end.error());
  if (const auto counts = (*end)->scan(context); !counts) return refuse(counts.error());
  sync::SessionOptions session_options;
  session_options.kind = (*end)->kind().number;
  session_options.peer_name = "who came here";
  sync::SessionObserver observer;
  observer.on_skipped = [&](const std::string& what, const Error& error) {
    (*end)->skip(context, what, error);
  };
  sync::Session session((*end)->parts(), session_options, observer);
  sync::ExchangeTotals totals;
  const auto exchanged = sync::run_exchange(session, exchange, context.stop(), totals);
  (*end)->finish();
  if (session.is_dry_run()) (*end)->take_back();
  if (!exchanged) return ExitCode::failed;  // the other end was told why
  return (*end)->skipped() == 0 ? ExitCode::ok : ExitCode::incomplete;
}

Action define_serve(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  app.add_flag("--stdio", options->stdio, "speak by stdin and stdout");
  app.add_option("PATH", options->end.root, "the store")->required();
  app.add_option("--kind", options->end.kind, "of store: maildir, mh, mbox or tree");
  app.add_option("--kind-if-empty", options->end.kind_if_empty,
                 "the same, where there is nothing to tell by");
  app.add_flag("--must-exist", options->end.must_exist, "do not make it if it is not there");
  app.add_flag("--must-see-all", options->end.must_see_all, "fail if a directory cannot be read");
  app.add_option("--state", options->end.state, "where what is known of stores is kept");
  app.add_option("--limit-rate", options->limit_rate, "bytes a second to send at most");
  return [options](Context& context) { return run_serve(context, *options); };
}

}  // namespace

extern const Command kServe{"serve", "be the other end of kin sync", define_serve};

}  // namespace kin::cmd
