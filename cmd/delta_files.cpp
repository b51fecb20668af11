#include "cmd/delta_files.h"

#include <fcntl.h>
#include <unistd.h>

namespace kin::cmd {

Result<std::unique_ptr<PieceReader>> PieceReader::open(Context& context, const std::string& path,
                                                       std::size_t piece_bytes) {
  const bool from_stdin = path == "-";
  std::unique_ptr<PieceReader> reader(new PieceReader(context, from_stdin ? "stdin" : path, piece_bytes));
  reader->fd_ =
      Fd(from_stdin ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reader->fd_) return errno_error("cannot open", reader->path_);
  return reader;
}

Result<ByteView> PieceReader::next() {
  KIN_TRY_ASSIGN(const std::size_t size, read_pipe(fd_.get(), buffer_, path_, context_.stop()));
  bytes_ += size;
  return ByteView(buffer_).first(size);
}

}  // namespace kin::cmd
