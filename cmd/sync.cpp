// kin sync: keeps two stores of mail, or two directories, the same.
#include "cmd/remote_end.h"
#include "cmd/sync_end.h"
#include "cmd/sync_run.h"
#include "lib/sync/store_files.h"

#include <filesystem>
#include <set>
#include <sys/stat.h>

namespace kin::cmd {
namespace {

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
  return SyncRun(context, options).run();
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
  app.add_flag("--watch", options->watch, "go on, whenever something changes at either end");
  app.add_option("--interval", options->interval, "with --watch: an exchange at least every so many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 86'400));
  app.add_flag("--status", options->status, "tell what is known of a store and its peers");
  app.add_flag("--restore-trash", options->restore_trash, "bring back what exchanges have deleted");
  return [options](Context& context) { return run_sync(context, *options); };
}

}  // namespace

extern const Command kSync{"sync", "keep two stores of mail, or two directories, the same", define_sync};

}  // namespace kin::cmd
