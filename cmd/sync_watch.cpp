#include "cmd/change_watch.h"
#include "cmd/sync_run.h"
#include "lib/sync/pause.h"

#include <algorithm>
#include <ostream>
#include <poll.h>

namespace kin::cmd {
namespace {

constexpr std::chrono::seconds kFirstDelay{5}, kLongestDelay{300};  // before another attempt to connect
// From one exchange to another that a change asks for.
constexpr std::chrono::seconds kLeastGap{1}, kLongestGap{10};

class SyncWatch {
 public:
  SyncWatch(Context& context, const SyncOptions& options)
      : context_(context), options_(options), run_(context, options) {}

  // What an exchange itself changes is seen as well, so that another one follows it; that finds nothing to
  // do.
  Result<ExitCode> keep_on() {
    for (;;) {
      ChangeWatch watch(
          {run_.root()});  // before the scan: what comes while an exchange goes on is not missed
      const Clock::time_point began = Clock::now();
      auto code = run_.run();
      context_.raw_out().flush();  // somebody may read it as a log
      if (!code && code.error().code() == ErrorCode::cancelled) return code;
      const auto waited = code ? wait(watch, began) : Result<void>(code.error());
      if (waited)
        delay_ = kFirstDelay;
      else if (waited.error().code() != ErrorCode::cancelled)
        put_off(waited.error());
      if (context_.stop().stop_requested()) return interrupted();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  using seconds = std::chrono::seconds;

  // Until another exchange is due. An error if the connection is gone.
  Result<void> wait(ChangeWatch& watch, Clock::time_point began) {
    const seconds interval(options_.interval);
    sync::Link* const link = run_.link();
    if (link == nullptr) {  // this end alone can say that there is something to do
      watch.wait(options_.interval, context_.stop());
      return {};
    }
    sync::Pause pause(true, Clock::now());
    const sync::PauseOptions options{watch.fd(), [&] { return watch.has_changed(); },
                                     Clock::now() + interval};
    auto ended = sync::run_pause(pause, *link, options, context_.stop());
    if (!ended || *ended == sync::PauseEnd::closed) {
      const int code = run_.disconnect();
      if (!ended) return std::move(ended).error();
      if (code != 0 && code != 3)
        return Error(ErrorCode::io,
                     fmt::format("the connection to the other end broke off (exit code {})", code));
      watch.wait(options_.interval, context_.stop());  // it does not want to stay
      return {};
    }
    if (*ended == sync::PauseEnd::time) return {};
    // Changes that leave nothing to do, be it that a program writes its own files there or that the other end
    // only says so, lead to fewer exchanges.
    rest_until(began + gap_);
    gap_ = run_.was_equal() ? std::min(2 * gap_, kLongestGap) : kLeastGap;
    return {};
  }

  void rest_until(Clock::time_point time) {
    while (!context_.stop().stop_requested() && Clock::now() < time) ::poll(nullptr, 0, 100);
  }

  // If there is one, it is to be there for the next attempt.
  void keep_link_until(Clock::time_point time) {
    while (run_.link() != nullptr && !context_.stop().stop_requested() && Clock::now() < time) {
      sync::Pause pause(true, Clock::now());
      const auto ended = sync::run_pause(pause, *run_.link(), {-1, {}, time}, context_.stop());
      if (!ended || *ended == sync::PauseEnd::closed) run_.disconnect();
    }
  }

  void put_off(const Error& error) {
    const seconds delay = std::min(delay_, std::max(seconds(options_.interval), kFirstDelay));
    context_.warn(fmt::format("{}; the next attempt is in {} s", error.message(), delay.count()));
    const Clock::time_point until = Clock::now() + delay;
    keep_link_until(until);
    rest_until(until);
    delay_ = std::min(2 * delay, kLongestDelay);
  }

  Context& context_;
  const SyncOptions& options_;
  SyncRun run_;
  seconds delay_ = kFirstDelay, gap_ = kLeastGap;
};

}  // namespace

Result<ExitCode> keep_syncing(Context& context, const SyncOptions& options) {
  return SyncWatch(context, options).keep_on();
}

}  // namespace kin::cmd
