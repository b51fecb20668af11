// kin sync: keeps two stores of mail, or two directories, the same.
#include "cmd/change_watch.h"
#include "cmd/remote_end.h"
#include "cmd/sync_end.h"
#include "cmd/sync_report.h"
#include "lib/base/path_text.h"
#include "lib/sync/exchange.h"
#include "lib/sync/store_files.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct SyncOptions {
  std::vector<std::string> places;
  std::string kind, state, ssh_command = "ssh", remote_kin = "kin", remote_state, limit_rate;
  bool mirror = false, collect = false, dry_run = false, allow_deletes = false, compare = false;
  bool watch = false, status = false, restore_trash = false;
  unsigned interval = 60;
};

// Which of the two is here, and how the other one is reached.
struct Ends {
  std::string there;  // for people
  std::vector<std::string> command;
  bool to_here = false;  // of one direction
};

Result<Ends> find_ends(const SyncOptions& options, const std::string& kind,
                       const std::string& kind_if_empty) {
  const SyncPlace a = parse_sync_place(options.places[0]), b = parse_sync_place(options.places[1]);
  Ends ends;
  ends.to_here = !a.host.empty();
  const SyncPlace& there = ends.to_here ? a : b;
  ends.there = options.places[ends.to_here ? 0 : 1];
  std::vector<std::string> serve{there.host.empty() ? "/proc/self/exe" : options.remote_kin, "serve",
                                 "--stdio"};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) serve.insert(serve.end(), {name, value});
  };
  add("--kind", kind);
  add("--kind-if-empty", kind_if_empty);
  add("--limit-rate", options.limit_rate);
  if ((options.mirror || options.collect) && ends.to_here) serve.push_back("--must-exist");
  if (options.mirror && ends.to_here) serve.push_back("--must-see-all");
  add("--state", there.host.empty() && options.remote_state.empty() ? options.state : options.remote_state);
  serve.insert(serve.end(), {"--", there.path.empty() ? "." : there.path});
  if (there.host.empty()) {
    ends.command = serve;
    return ends;
  }
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
  ends.command = {"/bin/sh", "-c",
                  options.ssh_command + " " + shell_quoted(there.host) + " " + shell_quoted(line)};
  return ends;
}

class SyncRun {
 public:
  SyncRun(Context& context, const SyncOptions& options) : context_(context), options_(options) {}

  Result<ExitCode> run(const std::string& kind, bool compare) {
    const bool first_is_here = parse_sync_place(options_.places[0]).host.empty();
    SyncEndOptions end_options;
    end_options.root = parse_sync_place(options_.places[first_is_here ? 0 : 1]).path;
    end_options.kind = kind;
    end_options.state = options_.state;
    end_options.must_exist = (options_.mirror || options_.collect) && first_is_here;
    end_options.must_see_all = options_.mirror && first_is_here;
    KIN_TRY_ASSIGN(auto end, SyncEnd::open(context_, end_options));
    KIN_TRY_ASSIGN(const Ends ends, find_ends(options_, kind, end->kind_is_open() ? "" : end->kind().name));
    KIN_TRY_ASSIGN(RemoteEnd remote, RemoteEnd::start(ends.command));  // it scans at the same time
    KIN_TRY(end->scan(context_));
    if (!report_) report_.emplace(end->kind().is_mail);
    SyncReport& report = *report_;
    sync::SessionOptions session_options;
    session_options.is_initiator = true;
    session_options.kind = end->kind().number;
    session_options.peer_name = ends.there;
    if (options_.mirror) session_options.direction = sync::Direction::mirror;
    if (options_.collect) session_options.direction = sync::Direction::collect;
    session_options.to_initiator = ends.to_here;
    session_options.dry_run = options_.dry_run;
    session_options.allow_deletes = options_.allow_deletes;
    session_options.compare = compare;
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
      context_.warn("conflict: " +
                    path_text(item.folder.empty() ? item.name : item.folder + "/" + item.name) + ": " + how);
    };
    observer.on_skipped = [&](const std::string& what, const Error& error) {
      end->skip(context_, what, error);
    };
    observer.on_compared = [&] {
      if (!options_.mirror && !options_.collect && !compare)
        context_.print("no common history with the other end is known: comparing all items");
    };
    sync::Session session(end->parts(), session_options, observer);
    sync::ExchangeOptions exchange;
    exchange.in = remote.in();
    exchange.out = remote.out();
    if (!options_.limit_rate.empty()) {
      KIN_TRY_ASSIGN(exchange.limit_bytes_per_second, parse_size(options_.limit_rate));
    }
    sync::ExchangeTotals totals;
    const auto started = std::chrono::steady_clock::now();
    exchange.on_tick = [&] { show_progress(session, totals, started); };
    auto exchanged = sync::run_exchange(session, exchange, context_.stop(), totals);
    context_.progress("");
    end->finish();
    if (options_.dry_run) end->take_back();
    const int code = remote.wait();
    if (!exchanged) {
      // Here is nothing to tell by: it is to be what the other one is.
      const sync::StoreKind* const theirs = sync::find_store_kind(session.peer_kind());
      if (end->kind_is_open() && theirs != nullptr && theirs != &end->kind()) {
        end->take_back();
        end.reset();
        report_.reset();
        return run(theirs->name, compare);
      }
      if (session.must_run_again() && !compare) {
        end.reset();
        return run(kind, true);
      }
      if (totals.bytes_in == 0 && code == 127)
        return Error(ErrorCode::io, fmt::format("kin was not found there (--remote-kin says where it is)"));
      if (totals.bytes_in == 0 && exchanged.error().code() == ErrorCode::io && code != 0)
        return Error(ErrorCode::io,
                     fmt::format("no answer from {} (exit code {})", printable(ends.there), code));
      return std::move(exchanged).error();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const bool is_strange = !session.outcome().is_equal && !session.outcome().peer_failed &&
                            end->skipped() == 0 && code == 0 && !compare && !options_.dry_run &&
                            !options_.collect;
    if (is_strange) {
      // All changes were made, and yet the two are not the same: what is known of one of them is wrong.
      context_.warn("both ends have made all changes, and are not the same: comparing all items");
      end.reset();
      before_ = {before_.bytes_in + totals.bytes_in, before_.bytes_out + totals.bytes_out};
      return run(kind, true);
    }
    totals = {before_.bytes_in + totals.bytes_in, before_.bytes_out + totals.bytes_out};
    return tell(*end, session, report, totals, seconds, code);
  }

 private:
  void show_progress(const sync::Session& session, const sync::ExchangeTotals& totals,
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

  Result<ExitCode> tell(SyncEnd& end, const sync::Session& session, const SyncReport& report,
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
      context_.print(fmt::format("{} for {} of content in {}; {}", wire, human_bytes(report.content_bytes()),
                                 human_duration(seconds),
                                 outcome.is_equal ? "both ends have the same now"
                                 : options_.collect
                                     ? "nothing was deleted"
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

  Context& context_;
  const SyncOptions& options_;
  std::uint64_t items_ = 0;
  std::optional<SyncReport> report_;  // of all passes
  sync::ExchangeTotals before_;       // of those that were not the last
};

Result<ExitCode> show_status(Context& context, const SyncOptions& options) {
  for (const std::string& place : options.places) {
    KIN_TRY_ASSIGN(const auto end, SyncEnd::open(context, {place, options.kind, "", true, options.state}));
    context.print_always(fmt::format("{}: {}, {} as of the last exchange", printable(end->root()),
                                     end->kind().name, counted(end->replica().live_items(), "item")));
    Json peers = Json::array();
    for (const auto& [id, peer] : end->replica().peers()) {
      std::uint64_t unseen = 0;
      KIN_TRY(end->replica().for_each_unseen(peer.seen, [&](const sync::KnownItem&) -> Result<void> {
        ++unseen;
        return {};
      }));
      context.print_always(fmt::format("  {}: last on {}; {} to send", printable(peer.name),
                                       local_time({peer.last_seconds, 0}), counted(unseen, "change")));
      Json row{{"replica", fmt::format("{:016x}", id)},
               {"last", iso_time({peer.last_seconds, 0})},
               {"to_send", unseen}};
      set_path(row, "name", peer.name);
      peers.push_back(std::move(row));
    }
    if (end->replica().peers().empty()) context.print_always("  no exchange yet");
    Json fields{
        {"kind", end->kind().name}, {"items", end->replica().live_items()}, {"peers", std::move(peers)}};
    set_path(fields, "path", end->root());
    context.json("sync_status", std::move(fields));
  }
  return ExitCode::ok;
}

// Of several that had one name, the later ones have some of their hash as well.
std::string restored_name(const sync::Item& item, std::set<std::string>& taken) {
  for (const std::string& suffix :
       {std::string(".kin-restored"), ".kin-restored-" + item.object.short_hex()}) {
    const std::string name = item.name.substr(0, sync::kMostNameBytes - suffix.size()) + suffix;
    if (taken.insert(item.folder + "/" + name).second) return name;
  }
  return item.name + ".kin-restored";
}

// What exchanges have deleted or replaced comes back, as new items.
Result<ExitCode> restore_trash(Context& context, const SyncOptions& options) {
  std::uint64_t restored = 0, skipped = 0;
  for (const std::string& place : options.places) {
    KIN_TRY_ASSIGN(const auto end, SyncEnd::open(context, {place, options.kind, "", true, options.state}));
    KIN_TRY(end->scan(context));
    std::vector<Bytes> keys;
    std::vector<sync::StoreChange> changes;
    std::set<std::string> names;
    KIN_TRY(end->replica().for_each_note(as_bytes("t"), [&](ByteView key, ByteView value) -> Result<void> {
      WireReader in(value);
      static_cast<void>(in.signed_varint());
      sync::Item item = sync::decode_item(in);
      if (in.failed() || !end->trash().has(item.object)) return {};
      KIN_TRY_ASSIGN(const auto live, end->replica().with_object(item.object, 64));
      for (const sync::KnownItem& known : live)
        if (known.item.folder == item.folder) return {};
      if (item.type == sync::ItemType::file) item.name = restored_name(item, names);
      sync::StoreChange change;
      change.item = std::move(item);
      change.has_content = true;
      change.content_path = end->trash().path_of(change.item.object);
      context.print(fmt::format("{} ({})", printable(sync::join_path(change.item.folder, change.item.name)),
                                human_bytes(change.item.size)));
      changes.push_back(std::move(change));
      keys.emplace_back(key.begin(), key.end());
      return {};
    }));
    if (options.dry_run) {
      restored += changes.size();
      continue;
    }
    const auto made = end->store().apply(changes);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) {
        end->skip(context, changes[i].item.folder + "/" + changes[i].item.name, made[i].error());
        continue;
      }
      ++restored;
      end->replica().set_note(keys[i], std::nullopt);
    }
    KIN_TRY(end->replica().commit(true));
    skipped += end->skipped();
  }
  context.print(fmt::format("{} {} back from the trash", counted(restored, "item"),
                            options.dry_run ? "would come" : "came"));
  context.json("restored_trash", {{"items", restored}, {"skipped", skipped}, {"dry_run", options.dry_run}});
  return skipped > 0 ? ExitCode::incomplete : ExitCode::ok;
}

// Without symlinks, also if it is not there yet.
std::filesystem::path real_path(const std::string& path) {
  std::error_code failed;
  std::filesystem::path out = std::filesystem::absolute(path, failed);
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(out, failed); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(out, failed);
    if (failed) break;
    out = out.parent_path() / target;
  }
  const std::filesystem::path found = std::filesystem::weakly_canonical(out, failed);
  if (!failed) out = found;
  return out.has_filename() ? out : out.parent_path();  // "a/" is "a"
}

// By their names or, where a directory is mounted twice or a file has two names, by what is there.
bool is_same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat of_a {
  }, of_b{};
  return a == b || (::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
                    of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino);
}

bool lies_in(std::filesystem::path inner, const std::filesystem::path& outer) {
  while (inner.has_relative_path()) {
    inner = inner.parent_path();
    if (is_same_place(inner, outer)) return true;
  }
  return false;
}

// Two that are on one machine must not lie in each other.
Result<void> check_places(const SyncOptions& options) {
  const SyncPlace a = parse_sync_place(options.places[0]), b = parse_sync_place(options.places[1]);
  if (!a.host.empty() && !b.host.empty())
    return Error(ErrorCode::invalid_argument, "one of the two stores must be on this machine");
  // ssh would take it for an option, and some of those run commands.
  for (const std::string& host : {a.host, b.host})
    if (host.starts_with('-'))
      return Error(ErrorCode::invalid_argument, "no host is named " + printable(host));
  if (!options.limit_rate.empty()) KIN_TRY(parse_size(options.limit_rate));
  if (!a.host.empty() || !b.host.empty()) return {};
  const std::filesystem::path first = real_path(a.path), second = real_path(b.path);
  if (is_same_place(first, second))
    return Error(ErrorCode::invalid_argument,
                 fmt::format("{} and {} are the same store", printable(a.path), printable(b.path)));
  for (const bool first_is_inner : {true, false})
    if (lies_in(first_is_inner ? first : second, first_is_inner ? second : first))
      return Error(ErrorCode::invalid_argument,
                   fmt::format("{} lies in {}, so the two cannot be kept the same",
                               printable(first_is_inner ? a.path : b.path),
                               printable(first_is_inner ? b.path : a.path)));
  return {};
}

// What an exchange itself changes is seen as well, so that another one follows it; that finds nothing to do.
Result<ExitCode> keep_syncing(Context& context, const SyncOptions& options) {
  std::vector<std::string> roots;
  for (const std::string& place : options.places)
    if (const SyncPlace parsed = parse_sync_place(place); parsed.host.empty()) roots.push_back(parsed.path);
  for (;;) {
    ChangeWatch watch(roots);  // before the scan: what comes while an exchange goes on is not missed
    const auto code = SyncRun(context, options).run(options.kind, options.compare);
    if (!code && code.error().code() == ErrorCode::cancelled) return code;
    if (!code) context.warn(code.error().message());
    watch.wait(options.interval, context.stop());
    if (context.stop().stop_requested()) return interrupted();
  }
}

Result<ExitCode> run_sync(Context& context, const SyncOptions& options) {
  if (options.status) return show_status(context, options);
  if (options.restore_trash) return restore_trash(context, options);
  if (options.places.size() != 2)
    return Error(ErrorCode::invalid_argument, "sync takes two stores, such as ~/Mail and host:Mail");
  if (options.mirror && options.collect)
    return Error(ErrorCode::invalid_argument, "--mirror and --collect are two different things");
  if (!options.kind.empty() && sync::find_store_kind(options.kind) == nullptr)
    return Error(ErrorCode::invalid_argument, "there is no kind of store named " + printable(options.kind) +
                                                  " (there are maildir, mh, mbox and tree)");
  KIN_TRY(check_places(options));
  if (options.watch) return keep_syncing(context, options);
  return SyncRun(context, options).run(options.kind, options.compare);
}

Action define_sync(CLI::App& app) {
  auto options = std::make_shared<SyncOptions>();
  app.add_option("STORE", options->places, "two stores; one may be [user@]host:path")
      ->required()
      ->expected(1, 2);
  app.add_option("--kind", options->kind, "of store: maildir, mh, mbox or tree (default: found out)");
  app.add_flag("--mirror", options->mirror, "make the second as the first, deletions included");
  app.add_flag("--collect", options->collect, "add to the second what it lacks; delete and change nothing");
  app.add_flag("-n,--dry-run", options->dry_run, "say what would be done, and do nothing");
  app.add_flag("--allow-deletes", options->allow_deletes, "also if much of a folder would go");
  app.add_flag("--compare", options->compare, "compare all items, whatever is known of the other end");
  app.add_option("--limit-rate", options->limit_rate, "bytes a second to send at most, each way");
  app.add_option("--ssh-command", options->ssh_command, "how ssh is called")->capture_default_str();
  app.add_option("--remote-kin", options->remote_kin, "kin on the other machine")->capture_default_str();
  app.add_option("--state", options->state, "where what is known of stores is kept");
  app.add_option("--remote-state", options->remote_state, "the same on the other machine");
  app.add_flag("--watch", options->watch, "go on, whenever something changes here");
  app.add_option("--interval", options->interval, "with --watch: look at the other end every so many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 86'400));
  app.add_flag("--status", options->status, "tell what is known of a store and its peers");
  app.add_flag("--restore-trash", options->restore_trash, "bring back what exchanges have deleted");
  return [options](Context& context) { return run_sync(context, *options); };
}

}  // namespace

extern const Command kSync{"sync", "keep two stores of mail, or two directories, the same", define_sync};

}  // namespace kin::cmd
