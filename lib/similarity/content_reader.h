// ContentReader: the content of a file, as a detector reads it: all of it in pieces, or here and there.
// One thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/file.h"
#include "lib/base/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace kin {

class ContentReader {
 public:
  virtual ~ContentReader() = default;

  // What it had when it was opened. It may shrink or grow while it is read; nothing relies on this.
  virtual std::uint64_t size() const = 0;
  // Fewer bytes than asked for means that it ends there.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) = 0;
};

// A regular file. What is none (a directory, a device, a FIFO, a socket) is invalid_argument, and opening it
// neither waits nor has effects.
class FileContent : public ContentReader {
 public:
  // Once `stop` is asked for, reading is interrupted.
  static Result<std::unique_ptr<FileContent>> open(const std::string& path, std::stop_token stop = {});
  // What was a regular file a moment ago, and no link: with half of the calls.
  static Result<std::unique_ptr<FileContent>> open_found(const std::string& path, std::stop_token stop = {});

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) override;

 private:
  FileContent(Fd fd, std::string path, std::uint64_t size, std::stop_token stop)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size), stop_(std::move(stop)) {}
  static Result<std::unique_ptr<FileContent>> open_with(const std::string& path, int flags,
                                                        std::stop_token stop);

  Fd fd_;
  std::string path_;
  std::uint64_t size_;
  std::stop_token stop_;
};

// Borrows the bytes.
class MemoryContent : public ContentReader {
 public:
  explicit MemoryContent(ByteView bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) override;

 private:
  ByteView bytes_;
};

inline constexpr std::size_t kContentPieceBytes = 1 << 20;

// All of it from front to back. Each piece but the first begins with the last `overlap` bytes of the one
// before, so that a window that lies across both is whole in one of them. `offset` is that of bytes[0]. Empty
// content has no piece; `overlap` is below kContentPieceBytes.
using VisitPiece = std::function<void(ByteView bytes, std::uint64_t offset)>;
Result<void> for_each_piece(ContentReader& content, std::size_t overlap, const VisitPiece& visit);

}  // namespace kin
