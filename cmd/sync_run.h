// SyncRun: exchanges of a store here with another one, from the connection to what a person is told of them.
#pragma once

#include "cmd/remote_end.h"
#include "cmd/sync_end.h"
#include "cmd/sync_report.h"
#include "lib/sync/exchange.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kin::cmd {

struct SyncOptions {
  std::vector<std::string> places;
  std::string kind, state, ssh_command = "ssh", remote_kin = "kin", remote_state, limit_rate;
  bool mirror = false, collect = false, dry_run = false, allow_deletes = false, compare = false;
  bool watch = false, status = false, restore_trash = false;
  unsigned interval = 60;
};

class SyncRun {
 public:
  // Both must outlive it.
  SyncRun(Context& context, const SyncOptions& options) : context_(context), options_(options) {}

  // One exchange, by the connection that is there or a new one. Where it shows that the two are of different
  // kinds, or that what is known of one is wrong, another one that minds it.
  Result<ExitCode> run();
  const std::string& root() const { return root_; }  // of the store here
  bool was_equal() const { return was_equal_; }      // the last one had nothing to do
  // With --watch, if the other end keeps it: there until disconnect(), or an exchange fails. Null: there is
  // none.
  sync::Link* link() { return remote_ ? &link_ : nullptr; }
  // The exit code of what was run to reach the other end; -1 if there was no connection.
  int disconnect();

 private:
  Result<ExitCode> attempt(const std::string& kind, bool compare);
  Result<void> connect(SyncEnd& end, const std::string& kind);
  sync::SessionOptions session_options(SyncEnd& end, bool compare) const;
  void show_progress(const sync::Session& session, const sync::ExchangeTotals& totals,
                     std::chrono::steady_clock::time_point started);
  Result<ExitCode> tell(SyncEnd& end, const sync::Session& session, const SyncReport& report,
                        const sync::ExchangeTotals& totals, double seconds, int remote_code);

  Context& context_;
  const SyncOptions& options_;
  const bool first_is_here_ = parse_sync_place(options_.places[0]).host.empty();
  const std::string root_ = parse_sync_place(options_.places[first_is_here_ ? 0 : 1]).path;
  const std::string there_ = options_.places[first_is_here_ ? 1 : 0];  // for people

  std::optional<RemoteEnd> remote_;
  sync::Link link_;
  // An older kin does not know that a connection can be kept: until then it is not asked again.
  std::chrono::steady_clock::time_point asks_to_stay_at_{};

  // Of one run.
  std::uint64_t items_ = 0;
  std::optional<SyncReport> report_;  // of all passes
  sync::ExchangeTotals before_;       // of those that were not the last
  bool was_equal_ = false;
  bool has_spoken_ = false;  // an exchange was begun
};

// --watch: goes on until it is interrupted.
Result<ExitCode> keep_syncing(Context& context, const SyncOptions& options);

}  // namespace kin::cmd
