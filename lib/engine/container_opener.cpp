#include "lib/engine/container_opener.h"

#include "lib/container/recipe.h"
#include "lib/engine/previous_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace kin {
namespace {

constexpr std::uint64_t kMostMembers = 10'000'000;
// Objects kept until the file is known to open; and those of members that may still turn out not to, all
// levels together.
constexpr std::uint64_t kHeldBytes = 32 << 20;
constexpr std::uint64_t kMostNestedBytes = 64 << 20;
// Shorter members are kept in the recipe once there were so many of them: an object takes more than that for
// its id, here and in the index.
constexpr std::size_t kShortMember = 64;
constexpr std::uint64_t kMostShortMembers = 256;
// Longer literals are objects: a version of the container that differs elsewhere shares them.
constexpr std::size_t kLongLiteral = 4096;
constexpr std::size_t kPieceBytes = 1 << 20;  // of long corrections and recipes
// Files up to this size are kept, to be opened again if a format's guess was wrong.
constexpr std::size_t kGuessBytes = 8 << 20;

bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported;
}

// What all levels of one file share.
struct Shared {
  BlockStore& store;
  Segmenter& segmenter;
  Segmenter::Emit emit;
  std::uint64_t raw_bytes = 0;    // read of the file
  std::uint64_t plain_bytes = 0;  // that codings made of it, at all levels
  std::uint64_t members = 0;
  std::vector<NewObject>* nested = nullptr;  // where objects wait, instead of being emitted
  std::uint64_t nested_bytes = 0;            // in all that wait
  ContainerCounts counts = {};               // of what is within the file
  bool proven_later = false;                 // see ContainerLimits
  SearchBudget search = SearchBudget();      // of the file, and of the recipe's trial
  std::stop_token stop = {};

  Result<void> put(NewObject object) {
    if (nested != nullptr) {
      nested_bytes += object.bytes.size();
      if (nested_bytes > kMostNestedBytes)
        return Error(ErrorCode::unsupported, "a member unpacks to more than can be kept until it is proven");
      nested->push_back(std::move(object));
      return {};
    }
    if (emit(std::move(object))) return {};
    return interrupted();
  }

  Result<ObjectId> put(ObjectKind kind, Bytes bytes, const std::optional<Extent>& before = {}) {
    NewObject object;
    object.id = store.id_of(bytes);
    object.kind = kind;
    if (before) object.previous = before->id;
    if (!is_metadata(kind)) object.sketch = store.scanner().sketch(bytes);
    object.bytes = std::move(bytes);
    const ObjectId id = object.id;
    KIN_TRY(put(std::move(object)));
    return id;
  }

  Result<std::vector<Extent>> fold(std::vector<Extent> extents) {
    return fold_extents(std::move(extents),
                        [this](ObjectKind kind, Bytes bytes) { return put(kind, std::move(bytes)); });
  }
};

// What passes through, counted and hashed.
class CountedSource : public ByteSource {
 public:
  CountedSource(ByteSource& source, SearchBudget& search) : source_(source), search_(search) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    auto got = source_.read(into);
    failed_ = failed_ || !got;
    if (!got) return got;
    digest_.add(into.first(*got));
    size_ += *got;
    search_.add_bytes(*got);
    return got;
  }
  std::uint64_t size() const { return size_; }
  bool failed() const { return failed_; }
  Digest digest() { return digest_.finish(); }

 private:
  ByteSource& source_;
  SearchBudget& search_;
  Hasher digest_;
  std::uint64_t size_ = 0;
  bool failed_ = false;
};

// Bytes that grow too long to be held go into objects, piece by piece.
class LongBytes {
 public:
  explicit LongBytes(Shared& shared) : shared_(shared) {}

  Result<void> add(ByteView bytes) {
    total_ += bytes.size();
    append(held_, bytes);
    while (held_.size() > kPieceBytes) {
      Bytes rest(held_.begin() + kPieceBytes, held_.end());
      held_.resize(kPieceBytes);
      KIN_TRY(flush());
      held_ = std::move(rest);
    }
    return {};
  }
  // Nothing if all of it is in `held`.
  bool is_short() const { return extents_.empty(); }
  Bytes take_held() { return std::move(held_); }
  std::uint64_t total() const { return total_; }
  Result<std::vector<Extent>> take_extents() {
    if (!held_.empty()) KIN_TRY(flush());
    return shared_.fold(std::move(extents_));
  }

 private:
  Result<void> flush() {
    const std::uint64_t size = held_.size();
    KIN_TRY_ASSIGN(const ObjectId id, shared_.put(ObjectKind::data, std::exchange(held_, {})));
    extents_.push_back({Extent::Kind::data, size, id});
    return {};
  }

  Shared& shared_;
  Bytes held_;
  std::vector<Extent> extents_;
  std::uint64_t total_ = 0;
};

// One container, at whatever depth.
class Level : public PartSink {
 public:
  Level(const ContainerOpener& opener, Shared& shared, int depth, const std::optional<Extent>& before,
        SearchBudget& around)
      : opener_(opener),
        shared_(shared),
        depth_(depth),
        before_(before),
        previous_(shared.store, before),
        search_(around.limits(), &around),
        recipe_(shared) {
    // Each level may hold this much, so deeper ones hold less.
    limits_.memory_bytes = std::max(limits_.memory_bytes >> (depth - 1), std::size_t{1} << 20);
    limits_.proven_later = shared.proven_later;
    limits_.search = &search_;
  }

  Result<Extent> open(const ContainerFormat& format, ByteSource& source) {
    WireWriter start;
    encode_recipe_start(format.name, start);
    KIN_TRY(recipe_.add(start.bytes()));
    CountedSource counted(source, search_);
    PeekSource in(counted);
    if (auto opened = format.open(in, *this, limits_); !opened) {
      // Of what was refused before anything was taken, all that was seen can be read again. Not if it was the
      // source that failed: it may have lost bytes, which nobody would miss.
      if (is_refusal(opened.error()) && !counted.failed() && in.position() == 0) {
        KIN_TRY_ASSIGN(const ByteView seen, in.peek(static_cast<std::size_t>(counted.size())));
        refused_.emplace(seen.begin(), seen.end());
      }
      return std::move(opened).error();
    }
    KIN_TRY(flush_literal());
    KIN_TRY_ASSIGN(const ByteView rest, in.peek(1));
    if (!rest.empty() || counted.size() == 0 || given_bytes_ != counted.size())
      return Error(ErrorCode::unsupported, fmt::format("{} did not give all of it", format.name));
    WireWriter end;
    encode_recipe_end({counted.size(), counted.digest()}, end);
    KIN_TRY(recipe_.add(end.bytes()));
    if (recipe_.total() > most_recipe_bytes(counted.size())) return too_long();
    RecipeObject object;
    if (recipe_.is_short()) {
      object.bytes = recipe_.take_held();
    } else {
      KIN_TRY_ASSIGN(object.extents, recipe_.take_extents());
    }
    KIN_TRY_ASSIGN(const ObjectId id, shared_.put(ObjectKind::recipe, encode_recipe_object(object), before_));
    return Extent{Extent::Kind::container, counted.size(), id};
  }

  // Once open() has refused a container at its front: what it has read.
  const std::optional<Bytes>& refused() const { return refused_; }

  Result<void> literal(ByteView bytes) override {
    given_bytes_ += bytes.size();
    append(literal_, bytes);
    return literal_.size() < kMostLiteral ? Result<void>() : flush_literal();
  }

  Result<void> member(std::string_view name, ByteSource& bytes) override {
    PeekSource in(bytes);
    KIN_TRY_ASSIGN(const ByteView start, in.peek(kShortMember));
    if (start.size() < kShortMember && ++short_members_ > kMostShortMembers) return literal(start);
    KIN_TRY(flush_literal());
    RecipePart part;
    part.name = name;
    KIN_TRY_ASSIGN(part.content, store_content(in, previous_.next(part.name)));
    for (const Extent& extent : part.content) given_bytes_ += extent.size;
    return part.content.empty() ? Result<void>() : add(part);
  }

  Result<void> coded_member(CodingId coding, std::string_view name, MemberSource& plain) override {
    KIN_TRY(flush_literal());
    RecipePart part;
    part.coding = coding;
    part.name = name;
    LongBytes corrections(shared_);
    Correcting source(plain, corrections, shared_);
    PeekSource in(source);
    KIN_TRY_ASSIGN(part.content, store_content(in, previous_.next(part.name)));
    KIN_TRY(corrections.add(plain.take_corrections()));
    given_bytes_ += plain.encoded_bytes();
    if (corrections.total() <= kMostInlineCorrections) {
      part.inline_corrections = corrections.take_held();
    } else {
      KIN_TRY_ASSIGN(part.corrections, corrections.take_extents());
    }
    return add(part);
  }

 private:
  // Takes the corrections as the plain bytes are read.
  class Correcting : public ByteSource {
   public:
    Correcting(MemberSource& plain, LongBytes& corrections, Shared& shared)
        : plain_(plain), corrections_(corrections), shared_(shared) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
      if (failed_) return *failed_;
      auto got = read_once(into);
      if (!got) failed_ = got.error();
      return got;
    }

   private:
    Result<std::size_t> read_once(std::span<std::uint8_t> into) {
      if (shared_.stop.stop_requested()) return interrupted();
      KIN_TRY_ASSIGN(const std::size_t got, plain_.read(into));
      KIN_TRY(corrections_.add(plain_.take_corrections()));
      shared_.plain_bytes += got;
      if (shared_.plain_bytes > most_coded_bytes(shared_.raw_bytes))
        return Error(ErrorCode::unsupported, "unpacks to far more than it is");
      return got;
    }

    std::optional<Error> failed_;  // for ever: what was read then is lost
    MemberSource& plain_;
    LongBytes& corrections_;
    Shared& shared_;
  };

  static Error too_long() {
    return Error(ErrorCode::unsupported, "the recipe is longer than what it is for");
  }

  Result<void> add(const RecipePart& part) {
    WireWriter out;
    encode_recipe_part(part, out);
    KIN_TRY(recipe_.add(out.bytes()));
    // Not only at the end: what is handed out by then stays in the repository.
    return recipe_.total() <= most_recipe_bytes(given_bytes_) ? Result<void>() : too_long();
  }

  Result<void> flush_literal() {
    if (literal_.empty()) return {};
    RecipePart part;
    if (literal_.size() < kLongLiteral) {
      part.literal = std::exchange(literal_, {});
      return add(part);
    }
    const std::uint64_t size = literal_.size();
    KIN_TRY_ASSIGN(const ObjectId id, shared_.put(ObjectKind::data, std::exchange(literal_, {})));
    part.content.push_back({Extent::Kind::data, size, id});
    return add(part);
  }

  // A member's bytes: a container in turn, or segments. `before`: what the member was.
  Result<std::vector<Extent>> store_content(PeekSource& in, const std::vector<Extent>& before) {
    if (++shared_.members > kMostMembers) return Error(ErrorCode::unsupported, "too many members");
    KIN_TRY_ASSIGN(const ByteView head, in.peek(kHeadBytes));
    const ContainerFormat* const format = depth_ < kMostContainerDepth ? opener_.detect(head) : nullptr;
    if (format != nullptr) {
      KIN_TRY_ASSIGN(const ByteView start, in.peek(limits_.memory_bytes));
      if (start.size() == limits_.memory_bytes) {
        Level level(opener_, shared_, depth_ + 1, container_of(before), search_);
        auto extent = level.open(*format, in);
        if (!extent && !level.refused()) return std::move(extent).error();
        if (extent) {
          ++shared_.counts.opened[format->name];
          return std::vector{*extent};
        }
        shared_.counts.add_closed(format->name, extent.error().message());
        in.give_back(*level.refused());
        return cut(in, before);
      }
      KIN_TRY_ASSIGN(const std::optional<Extent> extent, try_in_memory(*format, start, container_of(before)));
      if (extent) return std::vector{*extent};
    }
    return cut(in, before);
  }

  // Of a member that does not open, nothing is kept.
  Result<std::optional<Extent>> try_in_memory(const ContainerFormat& format, ByteView bytes,
                                              const std::optional<Extent>& before) {
    std::vector<NewObject> waiting;
    std::vector<NewObject>* const nested_before = std::exchange(shared_.nested, &waiting);
    const std::uint64_t bytes_before = shared_.nested_bytes;
    ContainerCounts counts_before = std::exchange(shared_.counts, {});
    MemoryView source(bytes);
    auto extent = Level(opener_, shared_, depth_ + 1, before, search_).open(format, source);
    shared_.nested = nested_before;
    shared_.nested_bytes = bytes_before;
    const ContainerCounts within = std::exchange(shared_.counts, std::move(counts_before));
    if (!extent && is_refusal(extent.error())) {
      shared_.counts.add_closed(format.name, extent.error().message());
      return std::optional<Extent>();
    }
    if (!extent) return std::move(extent).error();
    shared_.counts.add(within);
    ++shared_.counts.opened[format.name];
    for (NewObject& object : waiting) KIN_TRY(shared_.put(std::move(object)));
    return std::optional(*extent);
  }

  Result<std::vector<Extent>> cut(ByteSource& source, const std::vector<Extent>& before) {
    std::vector<Extent> extents;
    Result<void> put;
    const auto done =
        shared_.segmenter.run([&](std::span<std::uint8_t> into) { return source.read(into); },
                              std::numeric_limits<std::uint64_t>::max(),
                              [&](NewObject object) {
                                object.previous = data_at(before, extents.size());
                                extents.push_back({Extent::Kind::data, object.bytes.size(), object.id});
                                put = shared_.put(std::move(object));
                                return put.has_value();
                              });
    if (!put) return std::move(put).error();
    if (!done) return done.error();
    return shared_.fold(std::move(extents));
  }

  const ContainerOpener& opener_;
  Shared& shared_;
  const int depth_;  // 1: the file itself
  const std::optional<Extent> before_;
  PreviousMembers previous_;
  SearchBudget search_;
  ContainerLimits limits_;
  Bytes literal_;
  LongBytes recipe_;
  std::uint64_t given_bytes_ = 0;  // by the format, as they stood in the container
  std::uint64_t short_members_ = 0;
  std::optional<Bytes> refused_;
};

// The file itself; an error of its own is not a refusal of the format.
class FileBytes : public ByteSource {
 public:
  FileBytes(ByteSource& file, Shared& shared) : file_(file), shared_(shared) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    auto got = shared_.stop.stop_requested() ? interrupted() : file_.read(into);
    if (got) shared_.raw_bytes += *got;
    if (got) shared_.search.add_bytes(*got);
    if (!got) failure = got.error();
    return got;
  }
  std::optional<Error> failure;

 private:
  ByteSource& file_;
  Shared& shared_;
};

// The objects of one file, before they are stored. They must stay where they are as long as it lives, and
// what it gives.
class HeldObjectsView : public ObjectReader {
 public:
  explicit HeldObjectsView(const std::vector<NewObject>& held) {
    for (const NewObject& object : held) objects_.try_emplace(object.id, &object.bytes);
  }

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override {
    const auto at = objects_.find(id);
    if (at == objects_.end()) return Error(ErrorCode::not_found, "object " + id.short_hex() + " is missing");
    return std::shared_ptr<const Bytes>(std::shared_ptr<void>(), at->second);  // which owns nothing
  }
  Result<bool> contains(const ObjectId& id) override { return objects_.contains(id); }

 private:
  std::unordered_map<ObjectId, const Bytes*, ObjectIdHash> objects_;
};

Result<void> play(ObjectReader& reader, const Formats& formats, const Extent& extent,
                  const std::stop_token& stop) {
  ContentSource source(reader, formats, {extent});
  Bytes buffer(256 << 10);
  for (;;) {
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    if (got < buffer.size()) return {};
  }
}

}  // namespace

const ContainerFormat* ContainerOpener::detect(ByteView head) const { return find_format(formats_, head); }

Result<std::optional<Extent>> ContainerOpener::open(ByteSource& file, const Segmenter::Emit& emit,
                                                    ContainerCounts* counts,
                                                    const std::optional<Extent>& before) {
  PeekSource in(file);
  KIN_TRY_ASSIGN(const ByteView head, in.peek(kHeadBytes));
  const ContainerFormat* const format = detect(head);
  if (format == nullptr) return std::optional<Extent>();
  KIN_TRY_ASSIGN(const ByteView start, in.peek(kGuessBytes));
  if (start.size() < kGuessBytes) {
    MemoryView whole(start);
    bool unproven = false;
    auto extent = open_once(*format, whole, emit, counts, before, &unproven);
    if (!unproven) return extent;
  }
  return open_once(*format, in, emit, counts, before, nullptr);
}

Result<std::optional<Extent>> ContainerOpener::open_once(const ContainerFormat& format, ByteSource& file,
                                                         const Segmenter::Emit& emit, ContainerCounts* counts,
                                                         const std::optional<Extent>& before,
                                                         bool* unproven) {
  std::vector<NewObject> held;
  std::uint64_t held_bytes = 0;
  bool holding = true;
  Shared shared{store_, segmenter_, {}};
  shared.proven_later = unproven != nullptr;
  shared.search = SearchBudget(search_limits_, stop_);
  shared.stop = stop_;
  shared.emit = [&](NewObject object) {
    if (!holding) return emit(std::move(object));
    held_bytes += object.bytes.size();
    held.push_back(std::move(object));
    if (held_bytes <= kHeldBytes) return true;
    if (unproven != nullptr) {  // and too much to be
      *unproven = true;
      return false;
    }
    holding = false;
    for (NewObject& waiting : std::exchange(held, {}))
      if (!emit(std::move(waiting))) return false;
    return true;
  };
  FileBytes bytes(file, shared);
  const auto stays_closed = [&](const std::string& reason) {
    if (counts != nullptr) counts->add_closed(format.name, reason);
    return std::optional<Extent>();
  };
  auto extent = Level(*this, shared, 1, before, shared.search).open(format, bytes);
  if (bytes.failure) return *std::move(bytes.failure);
  if (stop_.stop_requested()) return interrupted();  // whatever came of it
  if (!extent && is_refusal(extent.error())) return stays_closed(extent.error().message());
  if (!extent) return std::move(extent).error();
  if (holding) {
    HeldObjectsView objects(held);
    Formats formats = formats_;
    formats.search = &shared.search;
    if (const auto played = play(objects, formats, *extent, stop_); !played) {
      if (stop_.stop_requested()) return interrupted();
      if (unproven == nullptr)
        return stays_closed(played.error().code() == ErrorCode::unsupported ? played.error().message()
                                                                            : "comes out otherwise");
      *unproven = true;
      return std::optional<Extent>();
    }
    for (NewObject& object : held)
      if (!emit(std::move(object))) return interrupted();
  }
  if (counts != nullptr) {
    counts->add(shared.counts);
    ++counts->opened[format.name];
  }
  return std::optional(*extent);
}

}  // namespace kin
