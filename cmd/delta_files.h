// The inputs of kin delta and kin patch, in pieces.
#pragma once

#include "cmd/context.h"
#include "cmd/output_file.h"
#include "lib/base/file.h"
#include "lib/delta/vcdiff.h"

#include <memory>
#include <string>

namespace kin::cmd {

// A file, a pipe, or stdin ("-"), in pieces of `piece_bytes`; only the last is smaller.
class PieceReader {
 public:
  static Result<std::unique_ptr<PieceReader>> open(Context& context, const std::string& path,
                                                   std::size_t piece_bytes);

  const Fd& fd() const { return fd_; }
  std::uint64_t bytes() const { return bytes_; }  // read until now
  VcdiffRead read() {
    return [this] { return next(); };
  }

 private:
  PieceReader(Context& context, std::string path, std::size_t piece_bytes)
      : context_(context), path_(std::move(path)), buffer_(piece_bytes) {}
  Result<ByteView> next();

  Context& context_;
  std::string path_;
  Fd fd_;
  Bytes buffer_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kin::cmd
