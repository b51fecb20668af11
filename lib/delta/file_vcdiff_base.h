// A file as the base of a VCDIFF delta, read in blocks. The blocks used last stay in memory, 64 MiB of them:
// as far as the encoder looks around. One thread at a time.
#pragma once

#include "lib/base/file.h"
#include "lib/delta/vcdiff.h"

#include <memory>
#include <string>
#include <vector>

namespace kin {

class FileVcdiffBase : public VcdiffBase {
 public:
  // invalid_argument if it is not a regular file: a pipe cannot be read at will.
  static Result<std::unique_ptr<FileVcdiffBase>> open(const std::string& path);

  const Fd& fd() const { return fd_; }
  std::uint64_t size() const override { return size_; }
  std::size_t block_size() const override;
  Result<ByteView> block(std::uint64_t number) override;

 private:
  struct Block {
    std::uint64_t number = 0, last_use = 0;
    Bytes bytes;
  };

  FileVcdiffBase(Fd fd, std::string path, std::uint64_t size);

  const Fd fd_;
  const std::string path_;
  const std::uint64_t size_;
  std::uint64_t uses_ = 0;
  std::vector<Block> blocks_;
  // By number, one more than where it is in blocks_, or 0. The encoder asks once for every second byte of
  // content that is nowhere in the base, so this must be quick.
  std::vector<std::uint8_t> places_;
};

}  // namespace kin
