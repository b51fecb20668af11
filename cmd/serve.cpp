// kin serve: the other end of kin sync, which starts it there.
#include "cmd/change_watch.h"
#include "cmd/sync_end.h"
#include "lib/base/pause.h"
#include "lib/sync/exchange.h"
#include "lib/sync/pause.h"

#include <chrono>
#include <optional>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct ServeOptions {
  SyncEndOptions end;
  bool stdio = false;
  std::string limit_rate;
};

// What it is to another end, exchange after exchange.
class Service {
 public:
  Service(Context& context, const ServeOptions& options, std::uint64_t limit_bytes_per_second)
      : context_(context), options_(options) {
    exchange_.limit_bytes_per_second = limit_bytes_per_second;
  }

  ExitCode run() {
    std::optional<ChangeWatch> watch;
    for (;;) {
      const ExitCode code = exchange();
      if (!is_kept_ || code == ExitCode::failed) return code;
      sync::Pause pause(false, Clock::now());
      if (!watch) pause.set_changed();  // nobody has watched since the scan
      if (!watch) watch.emplace(std::vector{options_.end.root});
      const sync::PauseOptions pause_options{watch->fd(), [&] { return watch->has_changed(); }, {}};
      const auto ended = sync::run_pause(pause, link_, pause_options, context_.stop());
      if (!ended) return ExitCode::failed;
      if (*ended == sync::PauseEnd::closed) return code;
      watch.emplace(std::vector{options_.end.root});  // before the scan: directories may be new
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  ExitCode exchange() {
    auto end = open();
    if (!end) return refuse(end.error());
    sync::SignsOfLife signs(link_, false, Clock::now());
    const auto counts = (*end)->scan(context_, [&] {
      if (is_kept_) signs.show(Clock::now());
    });
    if (!counts) return refuse(counts.error());
    sync::SessionOptions session_options;
    session_options.kind = (*end)->kind().number;
    session_options.peer_name = "who came here";
    sync::SessionObserver observer;
    observer.on_skipped = [&](const std::string& what, const Error& error) {
      (*end)->skip(context_, what, error);
    };
    sync::Session session((*end)->parts(), session_options, observer);
    sync::ExchangeTotals totals;
    exchange_.was_kept = is_kept_;
    const auto exchanged = sync::run_exchange(session, link_, exchange_, context_.stop(), totals);
    (*end)->finish();
    if (session.is_dry_run()) (*end)->take_back();
    is_kept_ = session.keeps_link();
    if (!exchanged) return ExitCode::failed;  // the other end was told why
    return (*end)->skipped() == 0 ? ExitCode::ok : ExitCode::incomplete;
  }

  // Over a connection that is kept, another exchange that has the store for a moment is waited for.
  Result<std::unique_ptr<SyncEnd>> open() {
    constexpr std::chrono::seconds kMostWait{10};
    constexpr std::chrono::milliseconds kLookAgain{100};
    const Clock::time_point until = Clock::now() + kMostWait;
    for (;;) {
      auto end = SyncEnd::open(context_, options_.end);
      if (end || end.error().code() != ErrorCode::busy || !is_kept_ || Clock::now() >= until ||
          context_.stop().stop_requested())
        return end;
      pause_for(kLookAgain);
    }
  }

  // Why it cannot be is told to the other end, whose user it is.
  static ExitCode refuse(const Error& error) {
    const Bytes frame = sync::encode_frame(sync::FrameType::error, as_bytes(error.message()));
    static_cast<void>(write_all(STDOUT_FILENO, frame, "stdout").has_value());
    return ExitCode::failed;
  }

  Context& context_;
  const ServeOptions& options_;
  sync::ExchangeOptions exchange_;
  sync::Link link_{STDIN_FILENO, STDOUT_FILENO, {}};
  bool is_kept_ = false;  // the connection, after an exchange
};

Result<ExitCode> run_serve(Context& context, const ServeOptions& options) {
  if (!options.stdio) return Error(ErrorCode::invalid_argument, "serve speaks by --stdio only");
  std::uint64_t limit_bytes_per_second = 0;
  if (!options.limit_rate.empty()) {
    KIN_TRY_ASSIGN(limit_bytes_per_second, parse_size(options.limit_rate));
  }
  return Service(context, options, limit_bytes_per_second).run();
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
