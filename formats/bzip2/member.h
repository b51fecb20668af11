// Member: bzip2 streams, one after the other, as one coded member; rebuild() is the way back.
//
// They are opened block by block. Each block is rebuilt and compared with the stream before any of its plain
// bytes is handed out. Memory: some fifteen times a block, which has 900,000 bytes at most, however much that
// unpacks to. One thread at a time.
//
// Errors of read(): corrupt, where the bytes are no bzip2 stream; unsupported, where they are, but written as
// no known encoder does.
#pragma once

#include "formats/bzip2/bit_reader.h"
#include "formats/bzip2/bit_writer.h"
#include "formats/bzip2/runs.h"
#include "lib/base/wire.h"
#include "lib/container/container_format.h"

#include <memory>

namespace kin::formats::bzip2 {

// Whether a stream begins here: its header, and the magic number of a block or of the end.
bool is_stream_start(ByteView bytes);
inline constexpr std::size_t kStreamStartBytes = 10;

class Member : public MemberSource {
 public:
  // The first stream begins where `in` stands. Once all was read, `in` stands behind the last.
  explicit Member(PeekSource& in);

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  Bytes take_corrections() override { return std::exchange(corrections_, WireWriter()).take(); }
  std::uint64_t encoded_bytes() const override { return encoded_bytes_; }

 private:
  Result<void> next();
  Result<void> open_block();
  Result<void> end_stream();
  Result<void> compare();

  PeekSource& in_;
  BitReader reader_;
  BitWriter writer_;  // what a rebuild will write
  bool ended_ = false;
  std::size_t level_ = 0;  // 0: between streams
  std::uint32_t stream_crc_ = 0;
  RunExpander block_;
  WireWriter corrections_;
  std::uint64_t corrections_bytes_ = 0;
  std::uint64_t encoded_bytes_ = 0;
};

std::unique_ptr<ByteSource> rebuild(std::unique_ptr<ByteSource> plain,
                                    std::unique_ptr<ByteSource> corrections, SearchBudget* search = nullptr);

}  // namespace kin::formats::bzip2
