#include "cmd/sync_run.h"

#include "lib/base/path_text.h"
#include "lib/sync/pause.h"

namespace kin::cmd {
namespace {

constexpr std::chrono::hours kAskToStayAgain{1};

// How the other end is reached.
std::vector<std::string> serve_command(const SyncOptions& options, const SyncPlace& there, bool is_first,
                                       const std::string& kind, const std::string& kind_if_empty) {
  std::vector<std::string> serve{there.host.empty() ? "/proc/self/exe" : options.remote_kin, "serve",
                                 "--stdio"};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) serve.insert(serve.end(), {name, value});
  };
  add("--kind", kind);
  add("--kind-if-empty", kind_if_empty);
  add("--limit-rate", options.limit_rate);
  if ((options.mirror || options.collect) && is_first) serve.push_back("--must-exist");
  if (options.mirror && is_first) serve.push_back("--must-see-all");
  add("--state", there.host.empty() && options.remote_state.empty() ? options.state : options.remote_state);
  serve.insert(serve.end(), {"--", there.path.empty() ? "." : there.path});
  if (there.host.empty()) return serve;
  // ssh hands one line to a shell there. How ssh itself is called may be more than a word, so a shell reads
  // that too.
  std::string line = there.path.starts_with("~") ? "" : "exec";
  for (std::size_t i = 0; i < serve.size(); ++i) {
    // The first may be a command with words of its own; "~/x" is for the shell there to make out.
    const bool is_plain = i == 0 || (i + 1 == serve.size() && serve[i].starts_with("~/"));
    line += (line.empty() ? "" : " ") + (is_plain && i == 0 ? serve[i]
                                         : is_plain         ? "~/" + shell_quoted(serve[i].substr(2))
                                                            : shell_quoted(serve[i]));
  }
  return {"/bin/sh", "-c", options.ssh_command + " " + shell_quoted(there.host) + " " + shell_quoted(line)};
}

}  // namespace

Result<ExitCode> SyncRun::run() {
  items_ = 0;
  report_.reset();
  before_ = {};
  was_equal_ = false;
  const bool was_kept = remote_.has_value();
  has_spoken_ = false;
  auto code = attempt(options_.kind, options_.compare);
  // Where only this end could not begin, the other one waits as before.
  if (!code && (has_spoken_ || !was_kept)) disconnect();
  return code;
}

int SyncRun::disconnect() {
  if (!remote_) return -1;
  const int code = remote_->wait();
  remote_.reset();
  return code;
}

Result<void> SyncRun::connect(SyncEnd& end, const std::string& kind) {
  if (remote_) return {};
  const SyncPlace there = parse_sync_place(there_);
  KIN_TRY_ASSIGN(RemoteEnd remote,
                 RemoteEnd::start(serve_command(options_, there, !first_is_here_, kind,
                                                end.kind_is_open() ? "" : end.kind().name)));
  remote_.emplace(std::move(remote));
  link_ = {remote_->in(), remote_->out(), {}};
  return {};
}

sync::SessionOptions SyncRun::session_options(SyncEnd& end, bool compare) const {
  sync::SessionOptions out;
  out.is_initiator = true;
  out.kind = end.kind().number;
  out.peer_name = there_;
  if (options_.mirror) out.direction = sync::Direction::mirror;
  if (options_.collect) out.direction = sync::Direction::collect;
  out.to_initiator = !first_is_here_;
  out.dry_run = options_.dry_run;
  out.allow_deletes = options_.allow_deletes;
  out.compare = compare;
  out.stays = options_.watch && std::chrono::steady_clock::now() >= asks_to_stay_at_;
  return out;
}

Result<ExitCode> SyncRun::attempt(const std::string& kind, bool compare) {
  SyncEndOptions end_options;
  end_options.root = root_;
  end_options.kind = kind;
  end_options.state = options_.state;
  end_options.must_exist = (options_.mirror || options_.collect) && first_is_here_;
  end_options.must_see_all = options_.mirror && first_is_here_;
  KIN_TRY_ASSIGN(auto end, SyncEnd::open(context_, end_options));
  const bool was_kept = remote_.has_value();
  KIN_TRY(connect(*end, kind));  // a new one scans at the same time
  sync::SignsOfLife signs(link_, true, std::chrono::steady_clock::now());
  KIN_TRY(end->scan(context_, [&] {
    if (was_kept) signs.show(std::chrono::steady_clock::now());
  }));
  if (!report_) report_.emplace(end->kind().is_mail);
  SyncReport& report = *report_;
  sync::SessionObserver observer;
  observer.on_received = [&](const sync::Record& record) {
    ++items_;
    report.received(record);
  };
  observer.on_sent = [&](const sync::Record& record) {
    ++items_;
    report.sent(record);
  };
  observer.on_conflict = [&](const sync::Item& item, const std::string& how) {
    report.conflict(item);
    context_.warn("conflict: " + path_text(item.folder.empty() ? item.name : item.folder + "/" + item.name) +
                  ": " + how);
  };
  observer.on_skipped = [&](const std::string& what, const Error& error) {
    end->skip(context_, what, error);
  };
  observer.on_compared = [&] {
    if (!options_.mirror && !options_.collect && !compare)
      context_.print("no common history with the other end is known: comparing all items");
  };
  sync::Session session(end->parts(), session_options(*end, compare), observer);
  sync::ExchangeOptions exchange;
  exchange.was_kept = was_kept;
  if (!options_.limit_rate.empty()) {
    KIN_TRY_ASSIGN(exchange.limit_bytes_per_second, parse_size(options_.limit_rate));
  }
  sync::ExchangeTotals totals;
  const auto started = std::chrono::steady_clock::now();
  exchange.on_tick = [&] { show_progress(session, totals, started); };
  has_spoken_ = true;
  auto exchanged = sync::run_exchange(session, link_, exchange, context_.stop(), totals);
  context_.progress("");
  end->finish();
  if (options_.dry_run) end->take_back();
  if (!exchanged) {
    const int code = disconnect();
    const std::uint8_t peer_kind = session.peer_kind();
    // Here is nothing to tell by: it is to be what the other one is.
    const sync::StoreKind* const theirs = sync::find_store_kind(peer_kind);
    if (end->kind_is_open() && theirs != nullptr && theirs != &end->kind()) {
      end->take_back();
      end.reset();
      report_.reset();
      return attempt(theirs->name, compare);
    }
    if (session.must_run_again() && !compare) {
      end.reset();
      return attempt(kind, true);
    }
    // Who has kept one knows what that is.
    if (session.keeps_link() && !was_kept && session.greeting_was_refused()) {
      end.reset();
      context_.print("the other end is of an older kin: each exchange has a connection of its own");
      asks_to_stay_at_ = std::chrono::steady_clock::now() + kAskToStayAgain;
      return attempt(kind, compare);
    }
    if (totals.bytes_in == 0 && code == 127)
      return Error(ErrorCode::io, fmt::format("kin was not found there (--remote-kin says where it is)"));
    if (totals.bytes_in == 0 && exchanged.error().code() == ErrorCode::io && code != 0)
      return Error(ErrorCode::io, fmt::format("no answer from {} (exit code {})", printable(there_), code));
    return std::move(exchanged).error();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const sync::SessionOutcome& outcome = session.outcome();
  was_equal_ = outcome.was_equal;
  const bool may_be_strange = !outcome.is_equal && !outcome.peer_failed && end->skipped() == 0 && !compare &&
                              !options_.dry_run && !options_.collect;
  // Whether the other end has left something out its exit code says.
  const int code = session.keeps_link() && !may_be_strange ? 0 : disconnect();
  totals = {before_.bytes_in + totals.bytes_in, before_.bytes_out + totals.bytes_out};
  if (may_be_strange && code == 0) {
    // All changes were made, and yet the two are not the same: what is known of one of them is wrong.
    context_.warn("both ends have made all changes, and are not the same: comparing all items");
    end.reset();
    before_ = totals;
    return attempt(kind, true);
  }
  return tell(*end, session, report, totals, seconds, code);
}

void SyncRun::show_progress(const sync::Session& session, const sync::ExchangeTotals& totals,
                            std::chrono::steady_clock::time_point started) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const std::uint64_t left = session.content_bytes_left();
  // Content shrinks on its way by about what it did so far.
  const double speed = seconds > 0 ? static_cast<double>(totals.bytes_out) / seconds : 0;
  std::string line =
      fmt::format("[{}] sent {}, received {}, {} items", human_duration(seconds),
                  human_bytes(totals.bytes_out), human_bytes(totals.bytes_in), grouped(items_));
  if (left > 0 && speed > 0)
    line += fmt::format(", {} to send, ETA {}", human_bytes(left),
                        human_duration(static_cast<double>(left) / 3 / speed));
  if (context_.shows_progress()) context_.progress(line);
}

Result<ExitCode> SyncRun::tell(SyncEnd& end, const sync::Session& session, const SyncReport& report,
                               const sync::ExchangeTotals& totals, double seconds, int remote_code) {
  const sync::SessionOutcome& outcome = session.outcome();
  report.print(context_);
  const std::string wire =
      fmt::format("{} sent, {} received", human_bytes(totals.bytes_out), human_bytes(totals.bytes_in));
  const bool is_one_way = options_.mirror || options_.collect;
  const bool is_incomplete = end.skipped() > 0 || outcome.peer_failed || remote_code == 3 ||
                             (!outcome.is_equal && !options_.dry_run && !options_.collect);
  if (outcome.was_equal)
    context_.print(fmt::format("nothing to do: {} on both ends; {} in {}",
                               counted(end.replica().live_items(), "item"), wire, human_duration(seconds)));
  else if (options_.dry_run)
    context_.print(
        fmt::format("nothing was changed; about {} would be sent and {} received for {} of content",
                    human_bytes(outcome.planned_bytes_out), human_bytes(outcome.planned_bytes_in),
                    human_bytes(report.content_bytes())));
  else
    context_.print(fmt::format(
        "{} for {} of content in {}; {}", wire, human_bytes(report.content_bytes()), human_duration(seconds),
        outcome.is_equal   ? "both ends have the same now"
        : options_.collect ? "nothing was deleted"
                           : "some changes could not be made, and are tried again next time"));
  context_.json("sync", {{"folders", report.json()},
                         {"was_equal", outcome.was_equal},
                         {"is_equal", outcome.is_equal},
                         {"dry_run", options_.dry_run},
                         {"one_way", is_one_way},
                         {"items", end.replica().live_items()},
                         {"skipped", end.skipped()},
                         {"bytes_sent", totals.bytes_out},
                         {"bytes_received", totals.bytes_in},
                         {"content_bytes", report.content_bytes()},
                         {"planned_bytes_sent", outcome.planned_bytes_out},
                         {"planned_bytes_received", outcome.planned_bytes_in},
                         {"seconds", seconds}});
  return is_incomplete ? ExitCode::incomplete : ExitCode::ok;
}

}  // namespace kin::cmd
