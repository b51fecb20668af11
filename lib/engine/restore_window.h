// RestoreWindow: files whose content is to be written, collected until there are enough of them.
//
// The blocks that hold their objects are then read forwards, each decoded once and written to all files that
// need it, by several threads. Containers are put together beside that, each by one thread. A file may be
// larger than a window. One thread at a time.
#pragma once

#include "lib/base/worker_pool.h"
#include "lib/engine/block_store.h"
#include "lib/engine/restore_report.h"
#include "lib/engine/restored_file.h"

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace kin {

// A file with several names. The first that gets the content is what the others become links to.
struct LinkedFile {
  std::uint64_t names_left = 0;
  std::string path;            // of the name that has the content; empty while none has
  bool being_written = false;  // in the window
  bool was_there = false;      // before the restore, and size and time fit
  bool unproven = false;       // was there, and the content may be anything
};

// Something to restore that is no directory.
struct RestoreEntry {
  std::shared_ptr<const Fd> directory;
  Node node;
  std::string path;                    // below the target
  std::shared_ptr<LinkedFile> linked;  // if it has several names
  bool kept = false;                   // --overwrite keeps what is there; at most it becomes a link
};

class RestoreWindow {
 public:
  static constexpr std::size_t kMostPieces = 4096;
  static constexpr std::uint64_t kMostBytes = 64 << 20;

  // Removes a directory that has the file's name. Called from several threads.
  using MakeRoom =
      std::function<Result<void>(const Fd& parent, const std::string& name, const std::string& path)>;

  RestoreWindow(BlockStore& store, const RestoreRequest& request, RestoreReport& report, MakeRoom make_room,
                std::stop_token stop);

  // Takes a file in, and writes what is there whenever that is much. What is wrong with one file goes to the
  // report; an error is the end of the restore.
  Result<void> add(RestoreEntry entry);
  // Writes and finishes all that was taken in; then the files' LinkedFile knows whether it has its content.
  Result<void> write();
  bool full() const { return files_.size() >= kMostPieces; }

 private:
  // A block's object goes to this file at this offset.
  struct Piece {
    std::shared_ptr<RestoredFile> file;
    std::uint64_t offset;
    ObjectId id;
    std::uint64_t size;
  };

  struct PlannedFile {
    std::shared_ptr<RestoredFile> file;
    std::shared_ptr<LinkedFile> linked;
  };

  void write_block(const BlockRef& block, const std::vector<Piece>& pieces);
  void write_container(const Piece& piece);
  Result<void> copy_container(const Piece& piece);
  void finish_file(RestoredFile& file);
  Result<void> verify_content(const RestoredFile& file, const Fd& fd);
  void fail_file(RestoredFile& file, const Error& error);

  BlockStore& store_;
  const RestoreRequest& request_;
  RestoreReport& report_;
  const MakeRoom make_room_;
  const std::stop_token stop_;

  std::vector<PlannedFile> files_;
  std::map<BlockRef, std::vector<Piece>> blocks_;
  std::vector<Piece> containers_;  // ids of recipes
  std::size_t pieces_ = 0;
  std::uint64_t bytes_ = 0;
  WorkerPool pool_;  // last: its tasks use all of the above
};

}  // namespace kin
