// RestoredFile: a file under restoration, written piece by piece from several threads. Thread-safe.
//
// Where nothing is in the way it grows under its own name, and goes again if it fails. Where something is, it
// grows beside that and takes its place when complete, so that damage in the repository never costs a file
// that was still there.
#pragma once

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/object/node.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace kin {

class RestoredFile {
 public:
  RestoredFile(std::shared_ptr<const Fd> directory, Node node, std::string path, bool sparse);
  ~RestoredFile();  // abandons what was not finished

  const Fd& directory() const { return *directory_; }
  const Node& node() const { return node_; }
  const std::string& path() const { return path_; }

  Result<void> write(ByteView bytes, std::uint64_t offset);
  // All is written: size, name, metadata. `prove`, if given, sees the file before that has its name, and
  // before its mode may keep us from reading it. `make_room` is to remove a directory that has the name. An
  // error before the file has its name abandons it; one in its metadata leaves it.
  Result<void> finish(const std::function<Result<void>(const Fd&)>& prove,
                      const std::function<Result<void>()>& make_room);

  // Bookkeeping of the window that plans it.
  std::atomic<std::size_t> pieces_left{0};
  std::atomic<bool> planned{false};  // no further piece follows
  std::atomic<bool> failed{false};
  std::atomic<bool> finished{false};  // it has its name

 private:
  Result<void> open() KIN_REQUIRES(mutex_);

  const std::shared_ptr<const Fd> directory_;
  const Node node_;
  const std::string path_;
  const bool sparse_;
  Mutex mutex_;
  Fd fd_ KIN_GUARDED_BY(mutex_);
  std::string written_name_ KIN_GUARDED_BY(mutex_);  // the node's, or that of a file beside it
};

}  // namespace kin
