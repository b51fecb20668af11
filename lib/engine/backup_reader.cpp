#include "lib/engine/backup_reader.h"

#include "lib/container/content_source.h"
#include "lib/engine/previous_members.h"

#include <utility>

namespace kin {
namespace {

// What is handed on at a time: to wake who waits for it costs more than a small file does.
constexpr std::size_t kHandOverBytes = 64 << 10;

}  // namespace

// On their way. False: stop.
class BackupReader::Items {
 public:
  explicit Items(const Reading::Emit& emit) : emit_(emit) {}

  bool add(ReadItem item) {
    bytes_ += item.part.object_bytes() + 1024;
    items_.push_back(std::move(item));
    return bytes_ < kHandOverBytes || flush();
  }
  bool flush() { return items_.empty() || emit_(std::exchange(items_, {}), std::exchange(bytes_, 0)); }

 private:
  const Reading::Emit& emit_;
  std::vector<ReadItem> items_;
  std::size_t bytes_ = 0;
};

BackupReader::BackupReader(BlockStore& store, ResumeLog& log, const BackupRequest& request,
                           BackupObserver& observer, const std::stop_token& stop)
    : store_(store),
      log_(log),
      request_(request),
      observer_(observer),
      stop_(stop),
      record_prefix_(resume_prefix(request.snapshot)),
      files_(store, request.formats, stop) {}

// Every object down to the last: a list may have been stored by a backup that died before its content was.
bool BackupReader::all_stored(const std::vector<Extent>& extents) {
  return for_each_object(store_, extents,
                         [&](const Extent& extent) -> Result<bool> {
                           KIN_TRY_ASSIGN(const bool stored, store_.contains(extent.id));
                           if (!stored) return Error(ErrorCode::not_found, "an object is missing");
                           return true;
                         })
      .has_value();
}

// The content of a file that has not changed, without reading it; only if all of it is really there.
bool BackupReader::reuse_content(WalkEntry& entry) {
  if (request_.read_all || request_.entries) return false;
  if (entry.before && same_state(entry.node, *entry.before) && all_stored(entry.before->content)) {
    entry.node.content = entry.before->content;
    return true;
  }
  const auto recorded = log_.recorded(record_prefix_ + entry.tree_path);
  if (!recorded || !*recorded) return false;
  WireReader in(**recorded);
  const Node node = decode_node(in);
  if (!in.finish("record") || !same_state(entry.node, node) || !all_stored(node.content)) return false;
  entry.node.content = node.content;
  return true;
}

std::span<const FileSample::Drawn> BackupReader::drawn_of(const WalkEntry& entry) const {
  return request_.sample == nullptr ? std::span<const FileSample::Drawn>()
                                    : request_.sample->drawn_of(entry.tree_path);
}

ReadItem BackupReader::read_entry(WalkEntry entry, Items& items) {
  ReadItem item;
  if (reuse_content(entry)) {
    item.reused = true;
    item.entry = std::move(entry);
    return item;
  }
  const std::string path = entry.path;
  const auto skip = [&](const Error& error) {
    observer_.on_skipped(path, error);
    item.skipped = true;
  };
  // The last part rides with the entry: a small file is one item.
  std::optional<FilePart> held;
  std::size_t extents = 0;
  const auto hand_on = [&](FilePart part) {
    observer_.on_read(path, part.size);
    auto object = part.objects.begin();
    for (const Extent& extent : part.extents) {
      const std::size_t place = extents++;
      if (extent.kind != Extent::Kind::data) continue;
      if (entry.before) object->previous = data_at(entry.before->content, place);
      ++object;
    }
    if (stop_.stop_requested()) return false;
    bool going = true;
    if (held) {
      ReadItem piece;
      piece.outcome = ReadItem::Outcome::part;
      piece.part = *std::move(held);
      going = items.add(std::move(piece));
    }
    held = std::move(part);
    return going;
  };
  if (request_.stream) {
    auto size = files_.read_stream(request_.stream->fd, path, hand_on);
    if (size) entry.node.size = *size;
    auto finished = size && request_.stream->finish ? request_.stream->finish() : Result<void>();
    if (!size) item.fatal = std::move(size).error();
    if (!finished) item.fatal = std::move(finished).error();
  } else if (request_.entries) {
    auto size = files_.read_entry(*request_.entries->source, path, hand_on);
    if (size) entry.node.size = *size;
    if (!size) item.fatal = std::move(size).error().context(printable(path));
  } else if (auto steady = files_.read_file(entry, hand_on, drawn_of(entry)); !steady) {
    item.outcome = ReadItem::Outcome::failed;
    if (steady.error().code() != ErrorCode::cancelled) skip(steady.error());
  } else if (!*steady) {
    skip(Error(ErrorCode::io, printable(path) + " changed while it was read; kept as it was read"));
  }
  if (held) item.part = *std::move(held);
  item.containers = files_.take_container_counts();
  item.entry = std::move(entry);
  return item;
}

// All entries, in the thread of one reader: an archive has to be read from front to back.
void BackupReader::read_source(Items& items) {
  for (;;) {
    auto next = request_.entries->source->next();
    ReadItem item;
    if (!next) item.fatal = std::move(next).error();
    if (next && !*next) return;
    if (next) {
      WalkEntry entry;
      entry.kind = (*next)->node.type == NodeType::file ? WalkEntry::Kind::file : WalkEntry::Kind::other;
      entry.node = std::move((*next)->node);
      entry.path = entry.tree_path = (*next)->path;
      if (entry.kind == WalkEntry::Kind::file) {
        item = read_entry(std::move(entry), items);
      } else {
        item.entry = std::move(entry);
      }
      item.link_to = std::move((*next)->link_to);
    }
    const bool ends = item.fatal.has_value();
    if (!items.add(std::move(item)) || ends || stop_.stop_requested()) return;
  }
}

void BackupReader::read_batch(WalkBatch batch, Items& items) {
  for (WalkEntry& entry : batch) {
    ReadItem item;
    if (entry.kind == WalkEntry::Kind::file) {
      item = read_entry(std::move(entry), items);
    } else {
      item.entry = std::move(entry);
    }
    if (!items.add(std::move(item))) return;
  }
}

void BackupReader::read(WalkBatch batch, const Reading::Emit& emit) {
  Items items(emit);
  if (request_.entries) {
    read_source(items);
  } else {
    read_batch(std::move(batch), items);
  }
  items.flush();
}

}  // namespace kin
