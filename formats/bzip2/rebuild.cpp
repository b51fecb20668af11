#include "formats/bzip2/block_bits.h"
#include "formats/bzip2/crc.h"
#include "formats/bzip2/frame.h"
#include "formats/bzip2/member.h"
#include "formats/bzip2/record.h"
#include "formats/bzip2/rotations.h"
#include "formats/bzip2/symbols.h"
#include "formats/bzip2/tables.h"
#include "formats/read_pieces.h"

#include <algorithm>
#include <utility>

namespace kin::formats::bzip2 {
namespace {

class Rebuilding : public ByteSource {
 public:
  Rebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections)
      : plain_(std::move(plain)),
        corrections_source_(std::move(corrections)),
        corrections_(*corrections_source_) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    return read_pieces(
        into, ready_, at_, [&] { return ended_; }, [&] { return next(); });
  }

 private:
  static Error does_not_fit() {
    return Error(ErrorCode::corrupt, "the corrections of a bzip2 stream do not fit its content");
  }

  Result<void> next() {
    if (!std::exchange(started_, true)) {
      KIN_TRY_ASSIGN(const ByteView version, corrections_.peek(1));
      if (version.empty()) return does_not_fit();
      if (version[0] != kVersion)
        return Error(ErrorCode::unsupported, "bzip2: corrections of another version");
      corrections_.skip(1);
    }
    KIN_TRY_ASSIGN(const Record record, read_record(corrections_));
    // A stream begins between streams, and everything else but the end is in one.
    const bool outside = record.kind == Record::Kind::stream || record.kind == Record::Kind::end;
    if (outside != (level_ == 0)) return does_not_fit();
    switch (record.kind) {
      case Record::Kind::end:
        KIN_TRY(expect_end());
        ended_ = true;
        break;
      case Record::Kind::stream:
        level_ = record.level;
        stream_crc_ = 0;
        write_stream_start(writer_, level_);
        break;
      case Record::Kind::stream_end:
        level_ = 0;
        write_stream_end(writer_, stream_crc_);
        break;
      case Record::Kind::block:
        KIN_TRY(add_block(record));
    }
    ready_ = writer_.take();
    at_ = 0;
    return {};
  }

  // There is no more content. If it is a container, this is also when its digest is compared.
  Result<void> expect_end() {
    std::uint8_t byte = 0;
    KIN_TRY_ASSIGN(const std::size_t got, plain_->read({&byte, 1}));
    return got == 0 ? Result<void>() : Result<void>(does_not_fit());
  }

  Result<void> add_block(const Record& record) {
    BlockContent content;
    KIN_TRY_ASSIGN(const Bytes block, read_plain(record, content.crc));
    const Rotations rotations = sort_rotations(block);
    content.symbols = make_symbols(rotations.last_column);
    content.origin = record.origin.value_or(rotations.origin);
    if (record.tables.empty()) {
      content.tables = choose_tables(content.symbols);
    } else {
      KIN_TRY_ASSIGN(content.tables, decode_tables(record.tables, content.symbols));
    }
    write_magic(writer_, kBlockMagic);
    write_block(writer_, content);
    stream_crc_ = combine_crc(stream_crc_, content.crc);
    return {};
  }

  // The block's plain bytes with runs shortened, and their CRC.
  Result<Bytes> read_plain(const Record& record, std::uint32_t& crc) {
    RunEncoder runs(record.long_runs ? kLongRun : kUsualRun);
    Crc sum;
    Bytes buffer(64 << 10);
    for (std::uint64_t left = record.plain_bytes; left > 0;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()));
      KIN_TRY_ASSIGN(const std::size_t got, plain_->read(std::span(buffer).first(size)));
      if (got < size) return does_not_fit();
      runs.add(ByteView(buffer).first(size));
      sum.add(ByteView(buffer).first(size));
      if (runs.size() > level_ * kLevelBytes) return does_not_fit();
      left -= size;
    }
    crc = sum.value();
    Bytes block = runs.finish();
    if (block.size() > level_ * kLevelBytes) return does_not_fit();
    return block;
  }

  const std::unique_ptr<ByteSource> plain_, corrections_source_;
  PeekSource corrections_;
  BitWriter writer_;
  bool started_ = false, ended_ = false;
  std::size_t level_ = 0;  // 0: between streams
  std::uint32_t stream_crc_ = 0;
  Bytes ready_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> rebuild(std::unique_ptr<ByteSource> plain,
                                    std::unique_ptr<ByteSource> corrections, SearchBudget*) {
  return std::make_unique<Rebuilding>(std::move(plain), std::move(corrections));
}

}  // namespace kin::formats::bzip2
