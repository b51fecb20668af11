#include "lib/engine/restore_window.h"

#include "lib/container/content_source.h"
#include "lib/engine/content_check.h"

#include <algorithm>
#include <utility>

namespace kin {
namespace {

constexpr std::size_t kInFlightBytes = 16 << 20;
constexpr std::size_t kContainerStepBytes = 1 << 20;
constexpr std::size_t kContainerMemoryBytes = 8 << 20;  // about what putting one together takes

}  // namespace

RestoreWindow::RestoreWindow(BlockStore& store, const RestoreRequest& request, RestoreReport& report,
                             MakeRoom make_room, std::stop_token stop)
    : store_(store),
      request_(request),
      report_(report),
      make_room_(std::move(make_room)),
      stop_(std::move(stop)),
      pool_(request.jobs, std::max(kInFlightBytes, request.jobs * kContainerMemoryBytes)) {}

void RestoreWindow::fail_file(RestoredFile& file, const Error& error) {
  if (error.code() == ErrorCode::cancelled) return;  // no fault of the file
  if (!file.failed.exchange(true)) report_.failed(file.path(), error);
}

Result<void> RestoreWindow::add(RestoreEntry entry) {
  if (entry.linked) entry.linked->being_written = true;
  const std::vector<Extent> content = entry.node.content;
  auto file = std::make_shared<RestoredFile>(entry.directory, std::move(entry.node), std::move(entry.path),
                                             request_.sparse);
  files_.push_back({file, entry.linked});
  Result<void> window;  // its failure is not the file's
  const auto planned = for_each_extent(
      store_, content,
      [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (stop_.stop_requested()) return window = interrupted();
        if (extent.kind == Extent::Kind::hole || file->failed) return {};
        if (extent.kind == Extent::Kind::container) {
          containers_.push_back({file, offset, extent.id, extent.size});
        } else {
          KIN_TRY_ASSIGN(const BlockRef block, store_.locate(extent.id));
          blocks_[block].push_back({file, offset, extent.id, extent.size});
        }
        ++file->pieces_left;
        ++pieces_;
        bytes_ += extent.size;
        if (pieces_ >= kMostPieces || bytes_ >= kMostBytes) {
          window = write();
          if (!window) return window;
          files_.push_back({file, entry.linked});
        }
        return {};
      },
      [&](const ObjectId&) { return !file->failed; });
  if (!window) return window;
  if (!planned) fail_file(*file, planned.error());
  file->planned = true;
  return {};
}

void RestoreWindow::finish_file(RestoredFile& file) {
  if (file.finished || file.failed || stop_.stop_requested()) return;
  std::function<Result<void>(const Fd&)> prove;
  if (request_.verify) prove = [&](const Fd& fd) { return verify_content(file, fd); };
  const auto finished =
      file.finish(prove, [&] { return make_room_(file.directory(), file.node().name, file.path()); });
  if (!finished) return fail_file(file, finished.error());
  if (request_.verify) report_.count(&RestoreStats::verified);
  report_.count(&RestoreStats::bytes, file.node().size);
  report_.done(file.path(), file.node(), RestoreReport::Action::restored);
}

void RestoreWindow::write_block(const BlockRef& block, const std::vector<Piece>& pieces) {
  if (std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.file->failed.load(); }))
    return;
  const auto content = store_.load_block(block);
  for (const Piece& piece : pieces) {
    RestoredFile& file = *piece.file;
    // Stored a second time, it may be sound there.
    const auto again = content || file.failed ? nullptr : store_.load(piece.id).value_or(nullptr);
    if (!content && !again) {
      fail_file(file, content.error());
    } else if (!file.failed) {
      const std::optional<ByteView> bytes = content ? (*content)->find(piece.id) : ByteView(*again);
      const bool right = bytes && bytes->size() == piece.size;
      auto written = right ? file.write(*bytes, piece.offset)
                           : Result<void>(Error(
                                 ErrorCode::corrupt,
                                 "object " + piece.id.short_hex() +
                                     " is not where the index says, or not of the size that the tree says"));
      if (!written) fail_file(file, written.error());
      if (written) report_.wrote(bytes->size());
    }
    if (file.pieces_left.fetch_sub(1) == 1 && file.planned) finish_file(file);
  }
}

// A container's members are wherever they were first met, and its bytes can only be made in order.
Result<void> RestoreWindow::copy_container(const Piece& piece) {
  ContentSource source(store_, request_.formats, {{Extent::Kind::container, piece.size, piece.id}});
  Bytes buffer(kContainerStepBytes);
  std::uint64_t offset = piece.offset;
  for (;;) {
    if (stop_.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::size_t got, source.read(buffer));
    if (got > 0) KIN_TRY(piece.file->write(ByteView(buffer).first(got), offset));
    report_.wrote(got);
    offset += got;
    if (got < buffer.size()) return {};  // only now is it known that all of it was right
  }
}

void RestoreWindow::write_container(const Piece& piece) {
  RestoredFile& file = *piece.file;
  if (!file.failed) {
    const auto written = copy_container(piece);
    if (!written) fail_file(file, written.error());
  }
  if (stop_.stop_requested()) return;
  if (file.pieces_left.fetch_sub(1) == 1 && file.planned) finish_file(file);
}

Result<void> RestoreWindow::verify_content(const RestoredFile& file, const Fd& fd) {
  KIN_TRY_ASSIGN(const bool same, has_content(store_, request_.formats, fd, file.path(), file.node(), stop_));
  if (!same) return Error(ErrorCode::io, "the file does not read back as it was written");
  return {};
}

// Writes the pieces that are planned, and finishes the files that have all of theirs.
Result<void> RestoreWindow::write() {
  for (const auto& [block, pieces] : blocks_)
    pool_.submit(
        [this, &block = block, &pieces = pieces]() -> Result<void> {
          if (!stop_.stop_requested()) write_block(block, pieces);
          return {};
        },
        static_cast<std::size_t>(block.content_size));
  for (const Piece& piece : containers_)
    pool_.submit(
        [this, &piece]() -> Result<void> {
          if (!stop_.stop_requested()) write_container(piece);
          return {};
        },
        kContainerMemoryBytes);
  KIN_TRY(pool_.wait());
  blocks_.clear();
  containers_.clear();
  pieces_ = 0;
  bytes_ = 0;
  // Those without content, and those whose last piece was written before it was known to be the last.
  for (const auto& planned : files_)
    if (planned.file->planned && planned.file->pieces_left == 0 && !planned.file->finished)
      pool_.submit(
          [this, file = planned.file]() -> Result<void> { return finish_file(*file), Result<void>(); },
          Scanner::kMostBytes);  // which --verify reads at a time
  KIN_TRY(pool_.wait());
  if (stop_.stop_requested()) return interrupted();
  for (const auto& [file, linked] : files_) {
    if (!linked || !file->planned) continue;
    linked->being_written = false;
    if (!file->finished) continue;
    linked->path = file->path();
    linked->was_there = linked->unproven = false;
  }
  files_.clear();
  return {};
}

}  // namespace kin
