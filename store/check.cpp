#include "store/check.h"

#include "lib/base/wire.h"
#include "lib/container/content_source.h"
#include "lib/object/tree.h"
#include "store/parity.h"
#include "store/short_id.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>
#include <set>

namespace kin::store {
namespace {

// Which ids were seen.
class SeenIds {
 public:
  bool add(const ObjectId& id) { return seen_.insert(ShortId(id)).second; }
  std::size_t size() const { return seen_.size(); }

 private:
  std::unordered_set<ShortId, ShortIdHash> seen_;
};

class Check {
 public:
  Check(Repository& repository, const Formats& formats, const ReadSubset& subset,
        const CheckObserver& observer, std::stop_token stop)
      : repository_(repository),
        formats_(formats),
        subset_(subset),
        observer_(observer),
        stop_(std::move(stop)),
        chains_(repository) {}

  Result<CheckStats> run();

 private:
  void problem(const std::string& text) {
    ++stats_.problems;
    observer_.on_problem(text);
  }
  // `where` is "snapshot 3f9a0b12:" and a path, empty for the root.
  void problem(const std::string& where, const std::string& text) {
    problem(where + (where.ends_with(':') ? " " : ": ") + text);
  }
  Result<void> check_keys();
  Result<void> check_set_aside();
  Result<void> list_packs();
  Result<void> check_index();
  Result<void> check_snapshots(const std::vector<SnapshotId>& ids);
  Result<void> check_tree(const ObjectId& tree, const std::string& where, int depth);
  Result<void> check_content(const Node& node, const std::string& where);
  Result<void> check_containers(const Node& node, const std::string& where);
  Result<void> play(const Extent& container);
  Result<void> name_sharers(const std::vector<SnapshotId>& ids);
  Result<std::uint64_t> count_faults(const ObjectId& tree, int depth);
  std::uint64_t count_faults(const Node& file);
  using Clock = std::chrono::steady_clock;
  Result<std::vector<FileInfo>> read_packs(const std::vector<FileInfo>& packs,
                                           const std::optional<Clock::time_point>& end);
  Result<void> read_packs_for_a_time(std::vector<FileInfo> packs);
  Result<void> check_packs();
  Result<void> check_parity();
  bool heal(const ObjectId& pack);
  void check_pack(const FileInfo& pack);
  Result<bool> lacks_a_base(const BlockHeader& header);
  std::vector<FileInfo> choose_packs() const;
  std::map<ObjectId, std::int64_t> sound_packs() const;
  // By when they were last found sound, those that never were first.
  void sort_by_age(std::vector<FileInfo>& packs) const;
  void tell_ages(const std::vector<FileInfo>& packs);
  Result<void> stopped() const {
    if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    return {};
  }

  Repository& repository_;
  const Formats formats_;
  const ReadSubset subset_;
  const CheckObserver& observer_;
  const std::stop_token stop_;
  CheckStats stats_;
  ChainCheck chains_;
  Marks marks_;
  std::vector<FileInfo> packs_;                                    // by name
  std::map<std::string, std::set<std::uint64_t>> indexed_blocks_;  // offsets, of the packs to be read
  SeenIds seen_trees_, seen_data_;
  SeenIds entered_;  // lists and recipes; the same bytes may be some file's data
  SeenIds played_;
  std::set<ObjectId> known_damaged_;  // from before; known where packs are read for a time
  std::unordered_set<ObjectId, ObjectIdHash> bad_objects_;                 // of content
  std::unordered_map<ObjectId, std::uint64_t, ObjectIdHash> tree_faults_;  // in name_sharers()
  std::map<SnapshotId, std::uint64_t> named_;  // those with problems of their own: how many
};

std::vector<FileInfo> Check::choose_packs() const {
  std::vector<FileInfo> chosen;
  switch (subset_.kind) {
    case ReadSubset::Kind::none:
      break;
    case ReadSubset::Kind::all:
    case ReadSubset::Kind::oldest:  // how many of them, the clock says
      return packs_;
    case ReadSubset::Kind::nth:
      // By name, so that n = 1..t together read every pack, also when packs come and go in between.
      for (const FileInfo& pack : packs_) {
        std::uint32_t start = 0;
        std::from_chars(pack.name.data(), pack.name.data() + 8, start, 16);
        if (start % subset_.of == subset_.n - 1) chosen.push_back(pack);
      }
      break;
    case ReadSubset::Kind::percent:
    case ReadSubset::Kind::bytes: {
      std::uint64_t total = 0;
      for (const FileInfo& pack : packs_) total += pack.size;
      std::vector<FileInfo> shuffled = packs_;
      std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(std::random_device{}()));
      const double wanted = subset_.kind == ReadSubset::Kind::bytes
                                ? static_cast<double>(subset_.bytes)
                                : static_cast<double>(total) * subset_.percent / 100;
      double bytes = 0;
      for (const FileInfo& pack : shuffled) {
        if (bytes >= wanted) break;
        bytes += static_cast<double>(pack.size);
        chosen.push_back(pack);
      }
      break;
    }
  }
  return chosen;
}

Result<void> Check::check_keys() {
  KIN_TRY(list_keys(repository_.backend(), [&](const Error& error) { problem(error.message()); }));
  return {};
}

// What prunes need: where it cannot be read, nothing is lost but the way back to a forgotten snapshot.
Result<void> Check::check_set_aside() {
  KIN_TRY_ASSIGN(StoredMarks stored, read_marks(repository_.backend(), repository_.sealer(),
                                                [&](const Error& error) { problem(error.message()); }));
  marks_ = std::move(stored.marks);
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> forgotten, repository_.list_forgotten());
  for (const SnapshotId& id : forgotten) {
    const auto snapshot = repository_.load_forgotten(id);
    if (snapshot || snapshot.error().code() == ErrorCode::not_found) continue;
    if (!marks_.forgotten.contains(id)) {
      problem(snapshot.error().message());
      continue;
    }
    // A prune has marked it, or a repair set it aside: nothing is left to do, but nobody should count on it.
    ++stats_.lost_forgotten;
    observer_.on_note(snapshot.error().message() + "; it cannot be brought back, and a prune removes it");
  }
  return {};
}

Result<void> Check::list_packs() {
  KIN_TRY_ASSIGN(packs_, repository_.backend().list(FileKind::pack));
  std::sort(packs_.begin(), packs_.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  stats_.packs = packs_.size();
  return {};
}

Result<void> Check::check_index() {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> segments, repository_.backend().list(FileKind::index));
  KIN_TRY(list_packs());
  std::map<std::string, std::uint64_t> sizes;
  for (const FileInfo& pack : packs_) sizes[pack.name] = pack.size;
  std::set<std::string> to_read, indexed, reported;
  for (const FileInfo& pack : choose_packs()) to_read.insert(pack.name);
  for (const FileInfo& file : segments) {
    KIN_TRY(stopped());
    const auto segment = repository_.load_index_segment(file.name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // removed since it was listed
    if (!segment) {
      // Then the files are read as before, here; elsewhere they are missing.
      const bool is_cached = repository_.index().segments().contains(file.name);
      problem(segment.error().message() +
              (is_cached ? " (the local cache knows what was in it; others miss it until kin repair index)"
                         : ""));
      continue;
    }
    for (const IndexPack& pack : segment->packs) {
      const std::string name = pack.id.hex();
      indexed.insert(name);
      const auto at = sizes.find(name);
      if (at != sizes.end() && at->second == pack.size) continue;
      // Or the segment was made while the pack was cut short, and the pack is whole again.
      if (at != sizes.end() && get_named(repository_.backend(), {FileKind::pack, name})) continue;
      if (heal(pack.id)) continue;
      const std::string text = FileName{FileKind::pack, name}.text();
      const std::string what =
          at == sizes.end() ? text + " is missing"
                            : fmt::format("{} has {} bytes instead of {}", text, at->second, pack.size);
      chains_.add_damaged_pack(pack.id, what, at == sizes.end() ? 0 : at->second);
      if (reported.insert(name).second) problem(what);
    }
    for (const IndexBlock& block : segment->blocks) {
      const std::string name = segment->packs[block.pack].id.hex();
      if (to_read.contains(name)) indexed_blocks_[name].insert(block.range.offset);
    }
  }
  if (!repository_.healed_packs().empty()) KIN_TRY(list_packs());
  // What a prune or a repair has given up, and nothing refers to, may be damaged.
  stats_.given_up_packs = std::erase_if(packs_, [&](const FileInfo& pack) {
    return !indexed.contains(pack.name) && marks_.condemns(*ObjectId::from_hex(pack.name));
  });
  // Nothing that kin left behind is so short: a file that lost its content, or no file at all.
  for (const FileInfo& pack : packs_) {
    if (pack.size >= PackBuilder::kPrefixBytes) continue;
    const auto start =
        repository_.backend().get_range({FileKind::pack, pack.name}, 0, PackBuilder::kPrefixBytes);
    if (!start && reported.insert(pack.name).second) problem(start.error().message());
  }
  for (const FileInfo& pack : packs_)
    if (!indexed.contains(pack.name)) ++stats_.unindexed_packs;
  return repository_.refresh_index([](const Error&) {});  // its problems are known by now
}

Result<void> Check::check_content(const Node& node, const std::string& where) {
  const std::uint64_t before = stats_.problems;
  const auto checked = for_each_object(repository_, node.content, [&](const Extent& extent) -> Result<bool> {
    KIN_TRY(stopped());
    const bool is_data = extent.kind == Extent::Kind::data;
    if (!(is_data ? seen_data_ : entered_).add(extent.id)) {
      if (bad_objects_.contains(extent.id))
        problem(where, fmt::format("object {} cannot be read, as is told above", extent.id.short_hex()));
      // What is bad below a list or a recipe is named for every file that has it.
      return !bad_objects_.empty();
    }
    if (!is_data) {
      const auto loaded = repository_.load(extent.id);
      if (loaded) return true;
      bad_objects_.insert(extent.id);
      problem(where, loaded.error().message());
      return false;
    }
    KIN_TRY_ASSIGN(const std::optional<Location> location, repository_.find_location(extent.id));
    std::optional<std::string> fault;
    if (!location) {
      fault = "is missing";
    } else if (location->size != extent.size) {
      fault = fmt::format("has {} bytes instead of {}", location->size, extent.size);
    } else {
      KIN_TRY_ASSIGN(fault, chains_.find_fault(*location));
      // It, or a base, may have been stored again since, and be sound there.
      if (fault && repository_.load(extent.id)) fault.reset();
      if (fault) fault = "cannot be read: " + *fault;
    }
    if (!fault) return true;
    bad_objects_.insert(extent.id);
    problem(where, fmt::format("object {} {}", extent.id.short_hex(), *fault));
    return true;
  });
  if (!checked && checked.error().code() == ErrorCode::cancelled) return checked.error();
  if (!checked) problem(where, checked.error().message());
  const bool all_read = subset_.kind == ReadSubset::Kind::all;
  return all_read && stats_.problems == before ? check_containers(node, where) : Result<void>();
}

Result<void> Check::check_containers(const Node& node, const std::string& where) {
  return for_each_extent(repository_, node.content, [&](const Extent& extent, std::uint64_t) -> Result<void> {
    if (extent.kind != Extent::Kind::container || !played_.add(extent.id)) return {};
    const auto played = play(extent);
    if (!played && played.error().code() == ErrorCode::cancelled) return played;
    if (!played) problem(where, played.error().message());
    ++stats_.containers;
    return {};
  });
}

Result<void> Check::play(const Extent& container) {
  ContentSource source(repository_, formats_, {container});
  Bytes buffer(256 << 10);
  for (;;) {
    KIN_TRY(stopped());
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    if (got < buffer.size()) return {};
  }
}

Result<void> Check::check_tree(const ObjectId& tree, const std::string& where, int depth) {
  KIN_TRY(stopped());
  if (depth > kMostTreeDepth) {
    problem(where, "more directories deep than kin ever stores");
    return {};
  }
  TreeCursor cursor(repository_, tree);
  cursor.on_object([&](const ObjectId& id) { return seen_trees_.add(id); });
  for (;;) {
    auto node = cursor.next();
    if (!node) {
      problem(where, node.error().message());
      return {};
    }
    if (!*node) return {};
    const std::string path = where + "/" + printable((*node)->name);
    if ((*node)->type == NodeType::file) KIN_TRY(check_content(**node, path));
    if ((*node)->type == NodeType::directory) KIN_TRY(check_tree((*node)->subtree, path, depth + 1));
  }
}

Result<void> Check::check_snapshots(const std::vector<SnapshotId>& ids) {
  for (const SnapshotId& id : ids) {
    observer_.on_progress("snapshots", stats_.snapshots, ids.size());
    const auto snapshot = repository_.load_snapshot(id);
    if (!snapshot && snapshot.error().code() == ErrorCode::not_found)
      continue;  // removed since it was listed
    ++stats_.snapshots;
    if (!snapshot) {
      problem(snapshot.error().message());
      continue;
    }
    const std::uint64_t before = stats_.problems;
    KIN_TRY(check_tree(snapshot->tree, "snapshot " + id.short_hex() + ":", 0));
    if (stats_.problems != before) named_[id] = stats_.problems - before;
  }
  stats_.trees = seen_trees_.size();
  stats_.objects = seen_data_.size() + entered_.size();
  return {};
}

// Each tree is looked at once, so damage below it was told of the first snapshot that has it. Here all trees
// are read a second time, which only who has damage pays for.
Result<void> Check::name_sharers(const std::vector<SnapshotId>& ids) {
  if (named_.empty()) return {};
  for (const SnapshotId& id : ids) {
    const auto snapshot = repository_.load_snapshot(id);
    if (!snapshot) continue;  // told, or removed since
    const auto named = named_.find(id);
    KIN_TRY_ASSIGN(const std::uint64_t faults, count_faults(snapshot->tree, 0));
    if (faults > (named == named_.end() ? 0 : named->second))
      problem(fmt::format("snapshot {}: {} damage that is named above", id.short_hex(),
                          named == named_.end() ? "shares" : "also shares"));
  }
  return {};
}

// As many as check_tree() names where it looks at all of it.
Result<std::uint64_t> Check::count_faults(const ObjectId& tree, int depth) {
  KIN_TRY(stopped());
  if (const auto known = tree_faults_.find(tree); known != tree_faults_.end()) return known->second;
  std::uint64_t faults = depth > kMostTreeDepth ? 1 : 0;
  for (TreeCursor cursor(repository_, tree); depth <= kMostTreeDepth;) {
    const auto node = cursor.next();
    if (!node) ++faults;
    if (!node || !*node) break;
    if ((*node)->type == NodeType::file) {
      faults += count_faults(**node);
    } else if ((*node)->type == NodeType::directory) {
      KIN_TRY_ASSIGN(const std::uint64_t below, count_faults((*node)->subtree, depth + 1));
      faults += below;
    }
  }
  tree_faults_[tree] = faults;
  return faults;
}

std::uint64_t Check::count_faults(const Node& file) {
  std::uint64_t faults = 0;
  const auto read = for_each_object(repository_, file.content, [&](const Extent& extent) -> Result<bool> {
    if (bad_objects_.contains(extent.id)) ++faults;
    return true;
  });
  return read ? faults : faults + 1;
}

// Some base of its chain is stored nowhere. A prune leaves such a delta where nothing needs either; if a
// snapshot does need it, the files that do are named.
Result<bool> Check::lacks_a_base(const BlockHeader& header) {
  std::optional<ObjectId> base = header.base;
  for (unsigned depth = 0; base && depth < kMostChain; ++depth) {
    KIN_TRY_ASSIGN(const std::optional<Location> location, repository_.find_location(*base));
    if (!location) return true;
    base = location->base;
  }
  return false;
}

// One that was read while the clock was ahead counts as never read: it would have its turn when the clock
// gets there.
std::map<ObjectId, std::int64_t> Check::sound_packs() const {
  std::map<ObjectId, std::int64_t> sound = repository_.index().sound_packs();
  std::erase_if(sound, [time = now().seconds](const auto& pack) { return pack.second > time; });
  return sound;
}

void Check::sort_by_age(std::vector<FileInfo>& packs) const {
  const std::map<ObjectId, std::int64_t> sound = sound_packs();
  const auto age = [&](const FileInfo& pack) {
    const auto at = sound.find(*ObjectId::from_hex(pack.name));
    return at == sound.end() ? std::pair(false, std::int64_t{0}) : std::pair(true, at->second);
  };
  std::stable_sort(packs.begin(), packs.end(),
                   [&](const FileInfo& a, const FileInfo& b) { return age(a) < age(b); });
}

void Check::tell_ages(const std::vector<FileInfo>& packs) {
  std::map<ObjectId, std::int64_t> sound = sound_packs();
  for (const FileInfo& pack : packs) {
    const auto at = sound.find(*ObjectId::from_hex(pack.name));
    if (at == sound.end()) {
      ++stats_.packs_never_read;
      continue;
    }
    stats_.oldest_check = std::min(stats_.oldest_check.value_or(at->second), at->second);
    sound.erase(at);
  }
  // What is left is of packs that are gone, since it was all that were asked for.
  if (subset_.kind == ReadSubset::Kind::oldest)
    for (const auto& [pack, seconds] : sound) repository_.index().note_sound(pack, std::nullopt);
}

void Check::check_pack(const FileInfo& pack) {
  const std::uint64_t before = stats_.problems;
  const FileName name{FileKind::pack, pack.name};
  const ObjectId id = ObjectId::from_hex(pack.name).value_or(ObjectId{});  // list() gives no other names
  const auto unreadable = [&](const std::string& what) {
    problem(what);
    repository_.lose_damaged(id);
    repository_.index().note_sound(id, std::nullopt);
    chains_.add_damaged_pack(id, what, 0);
  };
  auto file = repository_.backend().get(name);
  const auto is_whole = [&] { return file && hex(hash(*file)) == pack.name; };
  if (!is_whole() && heal(id)) file = repository_.backend().get(name);
  if (!file) return unreadable(file.error().message());
  stats_.bytes_read += file->size();
  if (!is_whole()) {
    problem(name.text() + ": checksum mismatch: the file is damaged");
    repository_.lose_damaged(id);
  }
  // Even so: which blocks are lost, and which are not?
  std::set<std::uint64_t> missing = std::move(indexed_blocks_[pack.name]);
  const auto salt = read_pack_prefix(*file);
  if (!salt) return unreadable(name.text() + ": " + salt.error().message());
  // No further than what was read: it may have been healed or cut since it was listed.
  const auto scanned = scan_pack(
      repository_.sealer(), repository_.backend(), {pack.name, file->size()},
      [&](const BlockHeader& header, BlockRange range) -> Result<void> {
        missing.erase(range.offset);
        const ByteView record = ByteView(*file).subspan(static_cast<std::size_t>(range.offset), range.size);
        const auto content = repository_.decode_record(*salt, range.offset, record);
        if (content) return {};
        KIN_TRY_ASSIGN(const bool is_left_over, lacks_a_base(header));
        if (!is_left_over)
          problem(fmt::format("{} at byte {}: {}", name.text(), range.offset, content.error().message()));
        chains_.add_damaged_block(id, range.offset);
        return {};
      });
  if (!scanned) problem(scanned.error().message());
  for (const std::uint64_t offset : missing) chains_.add_damaged_block(id, offset);
  if (!missing.empty())
    problem(fmt::format("{}: {} of its blocks cannot be found in it", name.text(), missing.size()));
  const bool is_sound = stats_.problems == before;
  repository_.index().note_sound(id, is_sound ? std::optional(now().seconds) : std::nullopt);
  if (is_sound && known_damaged_.contains(id)) repository_.index().note_damaged(id, false);
}

bool Check::heal(const ObjectId& pack) {
  // What is healed in memory only stays a problem.
  return repository_.heal(pack, stop_) == Repository::Healed::on_disk;
}

Result<void> Check::check_parity() {
  KIN_TRY_ASSIGN(
      const ParityStatus status,
      parity_status(
          repository_, subset_.kind == ReadSubset::Kind::all,
          [&](const Error& error) { problem(error.message() + " (kin parity add makes it anew)"); }, stop_));
  if (repository_.config().parity_percent > 0) stats_.bare_packs = status.bare_packs;
  return {};
}

// Until then, but one at least; gives those that are left.
Result<std::vector<FileInfo>> Check::read_packs(const std::vector<FileInfo>& packs,
                                                const std::optional<Clock::time_point>& end) {
  for (std::size_t i = 0; i < packs.size(); ++i) {
    KIN_TRY(stopped());
    if (end && stats_.packs_read > 0 && Clock::now() >= *end)
      return std::vector<FileInfo>(packs.begin() + static_cast<std::ptrdiff_t>(i), packs.end());
    observer_.on_progress("packs", stats_.packs_read, stats_.packs_to_read);
    check_pack(packs[i]);
    ++stats_.packs_read;
  }
  return std::vector<FileInfo>();
}

// Those that someone found damaged come first, but not for more than half of the time: or else, where there
// are many, no other is ever read.
Result<void> Check::read_packs_for_a_time(std::vector<FileInfo> packs) {
  const Clock::time_point begin = Clock::now();
  const auto all = std::chrono::seconds(subset_.seconds);
  for (const ObjectId& pack : repository_.index().damaged_packs()) known_damaged_.insert(pack);
  const auto others = std::stable_partition(packs.begin(), packs.end(), [&](const FileInfo& pack) {
    return known_damaged_.contains(*ObjectId::from_hex(pack.name));
  });
  KIN_TRY_ASSIGN(std::vector<FileInfo> left, read_packs({packs.begin(), others}, begin + all / 2));
  KIN_TRY(read_packs({others, packs.end()}, begin + all));
  KIN_TRY_ASSIGN(left, read_packs(left, begin + all));
  for (const FileInfo& pack : left)
    problem(FileName{FileKind::pack, pack.name}.text() +
            " was damaged when it was last read; there was no time to read it again");
  return {};
}

Result<void> Check::check_packs() {
  // The same choice as in check_index: those whose blocks were noted. Packs that no segment lists are read
  // only when all are.
  std::vector<FileInfo> chosen;
  for (const FileInfo& pack : packs_)
    if (subset_.kind == ReadSubset::Kind::all || indexed_blocks_.contains(pack.name)) chosen.push_back(pack);
  stats_.packs_to_read = chosen.size();
  if (subset_.kind != ReadSubset::Kind::oldest) {
    KIN_TRY(read_packs(chosen, std::nullopt));
  } else {
    sort_by_age(chosen);
    KIN_TRY(read_packs_for_a_time(chosen));
  }
  tell_ages(chosen);
  return {};
}

Result<CheckStats> Check::run() {
  KIN_TRY(check_keys());
  KIN_TRY(check_set_aside());
  // Against the order of writing: what is listed later holds all that was listed before it names, whoever
  // writes meanwhile.
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> snapshots, repository_.list_snapshots());
  KIN_TRY(check_index());
  // Before the snapshots, so that the files which the damage hits are named.
  if (subset_.kind != ReadSubset::Kind::none) KIN_TRY(check_packs());
  KIN_TRY(check_snapshots(snapshots));
  KIN_TRY(name_sharers(snapshots));
  KIN_TRY(check_parity());
  stats_.healed_packs = repository_.healed_packs().size();
  stats_.chains = chains_.found();
  return stats_;
}

}  // namespace

Result<ReadSubset> parse_read_subset(const std::string& text) {
  ReadSubset subset;
  const auto bad = [&] {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("'{}' is not a subset such as 2/5, 5% or 2G", printable(text)));
  };
  if (const std::size_t slash = text.find('/'); slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), text.data() + slash, subset.n).ptr != text.data() + slash) return bad();
    if (std::from_chars(text.data() + slash + 1, end, subset.of).ptr != end) return bad();
    if (subset.n < 1 || subset.of < 1 || subset.n > subset.of || subset.of > 256) return bad();
    subset.kind = ReadSubset::Kind::nth;
    return subset;
  }
  if (text.ends_with('%')) {
    const char* const end = text.data() + text.size() - 1;
    if (std::from_chars(text.data(), end, subset.percent).ptr != end ||
        !(subset.percent > 0 && subset.percent <= 100))
      return bad();
    subset.kind = ReadSubset::Kind::percent;
    return subset;
  }
  const auto bytes = parse_size(text);
  if (!bytes || *bytes == 0) return bad();
  subset.kind = ReadSubset::Kind::bytes;
  subset.bytes = *bytes;
  return subset;
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  static constexpr std::string_view kLetters = "smhd";
  static constexpr std::uint64_t kSeconds[] = {1, 60, 3600, 24 * 3600};
  constexpr std::uint64_t kMost = 1'000'000'000;
  const Error bad(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a duration such as 90s, 30m, 1h30m or 2d", printable(text)));
  std::uint64_t total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::size_t unit = rest.empty() ? std::string_view::npos : kLetters.find(rest.front());
    if (status != std::errc{} || unit == std::string_view::npos || number > kMost) return bad;
    total += number * kSeconds[unit];
    rest.remove_prefix(1);
    if (total > kMost) return bad;
  }
  return total == 0 ? Result<std::uint64_t>(bad) : Result<std::uint64_t>(total);
}

Result<CheckStats> check(Repository& repository, const Formats& formats, const ReadSubset& subset,
                         const CheckObserver& observer, std::stop_token stop) {
  return Check(repository, formats, subset, observer, std::move(stop)).run();
}

}  // namespace kin::store
