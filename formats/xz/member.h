// Member: .xz streams, one after the other, as one coded member; rebuild() is the way back.
//
// They are opened chunk by chunk. What is handed out was compressed again and compared, except for what is
// ContainerLimits::proven_later. Memory: the file, up to most_encoded_bytes(); the encoder's tables,
// up to most_table_bytes(); and about three times the dictionary. One thread at a time.
//
// Errors of read(): corrupt, where the bytes are no .xz stream; unsupported, where they are, but written as
// no known encoder does, or too large.
#pragma once

#include "formats/xz/block_proof.h"
#include "formats/xz/decoder.h"
#include "formats/xz/frame.h"
#include "formats/xz/record.h"
#include "lib/container/container_format.h"

#include <memory>

namespace kin::formats::xz {

bool is_stream_start(ByteView bytes);

class Member : public MemberSource {
 public:
  // The first stream begins where `in` stands. Once all was read, `in` stands behind the last.
  Member(PeekSource& in, const ContainerLimits& limits) : in_(in), limits_(limits) {
    corrections_.u8(kVersion);
  }

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  Bytes take_corrections() override { return std::exchange(corrections_, WireWriter()).take(); }
  std::uint64_t encoded_bytes() const override { return encoded_bytes_; }

 private:
  enum class Where : std::uint8_t { front, between_streams, in_stream, in_block, behind };

  Result<void> next();
  Result<void> look_ahead();
  Result<void> begin_stream();
  Result<void> begin_block();
  Result<void> open_chunk();
  Result<void> end_block();
  Result<void> end_stream();
  void hand_out();
  void add_record(const Record& record) { encode_record(corrections_, record); }
  void skip(std::size_t bytes) {
    in_.skip(bytes);
    encoded_bytes_ += bytes;
  }

  PeekSource& in_;
  const ContainerLimits limits_;
  Where where_ = Where::front;
  std::uint64_t encoded_bytes_ = 0, all_plain_bytes_ = 0;
  WireWriter corrections_;
  // Of the stream:
  CheckId check_ = CheckId::none;
  Index index_;
  // Of the block:
  std::optional<Settings> settings_;  // or of the one before
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<BlockProof> proof_;
  std::optional<ContentCheck> content_check_;
  Bytes block_header_;
  std::uint64_t block_start_ = 0;
  std::uint64_t block_plain_bytes_ = 0;
  std::uint64_t piece_bytes_ = 0;  // that no record is written of
  std::uint64_t handed_out_ = 0;   // of the block: moved to ready_
  Bytes waiting_;                  // plain bytes that are not proven
  Bytes ready_;
  std::size_t ready_at_ = 0;
};

std::unique_ptr<ByteSource> rebuild(std::unique_ptr<ByteSource> plain,
                                    std::unique_ptr<ByteSource> corrections, SearchBudget* search = nullptr);

}  // namespace kin::formats::xz
