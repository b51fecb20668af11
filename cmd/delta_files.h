// The files of kin delta and kin patch: inputs in pieces, and an output that is whole or absent.
#pragma once

#include "cmd/context.h"
#include "lib/base/file.h"
#include "lib/delta/vcdiff.h"

#include <memory>
#include <string>
#include <vector>

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

// Stdout ("-"), or a file that appears under its name when it is whole. The destructor abandons it.
class OutputFile {
 public:
  // invalid_argument if it would replace one of `inputs`, or something that is not a file.
  static Result<std::unique_ptr<OutputFile>> open(Context& context, const std::string& path,
                                                  const std::vector<const Fd*>& inputs);
  ~OutputFile();

  std::uint64_t bytes() const { return bytes_; }
  bool is_stdout() const { return path_.empty(); }
  VcdiffWrite write() {
    return [this](ByteView bytes) { return write_bytes(bytes); };
  }
  Result<void> commit();

 private:
  explicit OutputFile(Context& context) : context_(context) {}
  Result<void> write_bytes(ByteView bytes);

  Context& context_;
  std::string path_, temporary_;  // both empty for stdout
  Fd fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kin::cmd
