#include "formats/xz/member.h"

#include "formats/read_pieces.h"
#include "formats/xz/limits.h"
#include "formats/xz/survey.h"

#include <algorithm>

namespace kin::formats::xz {
namespace {

// A record is written for so much content, or a chunk more.
constexpr std::uint64_t kPieceBytes = 16U << 20;

Error no_stream(const char* why) { return Error(ErrorCode::corrupt, std::string("xz: ") + why); }
Error too_large(const char* what) {
  return Error(ErrorCode::unsupported, std::string("xz: too large: ") + what);
}

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

bool is_stream_start(ByteView bytes) { return parse_stream_header(bytes).has_value(); }

Result<std::size_t> Member::read(std::span<std::uint8_t> into) {
  return read_pieces(
      into, ready_, ready_at_, [&] { return where_ == Where::behind; }, [&] { return next(); });
}

Result<void> Member::next() {
  switch (where_) {
    case Where::front:
      KIN_TRY(look_ahead());
      return begin_stream();
    case Where::between_streams:
      return begin_stream();
    case Where::in_stream:
      return begin_block();
    case Where::in_block:
      return open_chunk();
    case Where::behind:
      break;
  }
  return {};
}

// What is too large is refused before anything is done with it.
Result<void> Member::look_ahead() {
  const std::size_t most_bytes = most_encoded_bytes(limits_.memory_bytes);
  KIN_TRY_ASSIGN(const ByteView file, in_.peek(most_bytes + 1));
  if (file.size() > most_bytes) return too_large("the file");
  const Survey survey = survey_streams(file);
  if (survey.plain_bytes > kMostPlainBytes) return too_large("more than 512 MiB of content");
  if (survey.table_bytes > most_table_bytes(limits_.memory_bytes)) return too_large("its dictionary");
  return {};
}

Result<void> Member::begin_stream() {
  // Zeros belong to the content only if a stream follows.
  std::size_t zeros = 0;
  if (where_ == Where::between_streams) {
    KIN_TRY_ASSIGN(const ByteView ahead, in_.peek(kMostPaddingBytes));
    zeros = static_cast<std::size_t>(
        std::find_if(ahead.begin(), ahead.end(), [](auto byte) { return byte != 0; }) - ahead.begin());
  }
  KIN_TRY_ASSIGN(const ByteView ahead, in_.peek(zeros + kStreamHeaderBytes));
  const auto check =
      zeros % 4 == 0 ? parse_stream_header(ahead.subspan(std::min(zeros, ahead.size()))) : std::nullopt;
  if (!check) {
    if (where_ == Where::front) return no_stream("no stream");
    where_ = Where::behind;
    add_record({});
    return {};
  }
  Record record;
  if (zeros > 0) {
    record.kind = Record::Kind::padding;
    record.count = zeros / 4;
    add_record(record);
  }
  skip(zeros + kStreamHeaderBytes);
  check_ = *check;
  index_ = Index();
  record.kind = Record::Kind::stream;
  record.check = check_;
  add_record(record);
  where_ = Where::in_stream;
  return {};
}

Result<void> Member::begin_block() {
  KIN_TRY_ASSIGN(const ByteView first, in_.peek(1));
  if (first.empty()) return no_stream("cut off");
  const std::size_t header_bytes = block_header_bytes(first[0]);
  if (header_bytes == 0) return end_stream();
  KIN_TRY_ASSIGN(const ByteView header, in_.peek(header_bytes));
  const auto dictionary = parse_block_header(header);
  if (!dictionary)
    return Error(ErrorCode::unsupported, "xz: a block that is damaged, or has filters besides LZMA2");
  block_start_ = encoded_bytes_;
  block_header_.assign(header.begin(), header.end());
  skip(header_bytes);
  decoder_ = std::make_unique<Decoder>(*dictionary);
  proof_ = std::make_unique<BlockProof>(*dictionary, settings_, limits_.proven_later,
                                        most_table_bytes(limits_.memory_bytes), limits_.search);
  content_check_.emplace(check_);
  block_plain_bytes_ = piece_bytes_ = handed_out_ = 0;
  where_ = Where::in_block;
  return {};
}

Result<void> Member::open_chunk() {
  KIN_TRY_ASSIGN(const ByteView head, in_.peek(kMostChunkHeader));
  const auto header = parse_chunk_header(head);
  if (!header) return no_stream("neither a chunk nor the end of a block");
  if (header->is_end) return end_block();
  const std::size_t size = header->header_bytes + header->encoded_bytes;
  KIN_TRY_ASSIGN(const ByteView chunk, in_.peek(size));
  if (chunk.size() < size) return no_stream("cut off");
  KIN_TRY_ASSIGN(const ByteView plain, decoder_->decode(*header, chunk.subspan(header->header_bytes)));
  all_plain_bytes_ += plain.size();
  if (all_plain_bytes_ > kMostPlainBytes) return too_large("more than 512 MiB of content");
  content_check_->add(plain);
  KIN_TRY(proof_->add(*header, chunk, plain));
  append(waiting_, plain);
  block_plain_bytes_ += plain.size();
  piece_bytes_ += plain.size();
  skip(size);
  hand_out();
  return {};
}

// What is proven, with the records that it needs.
void Member::hand_out() {
  if (!proof_->settings()) return;
  Record record;
  if (!block_header_.empty()) {
    record.kind = settings_ == proof_->settings() ? Record::Kind::block : Record::Kind::new_block;
    record.settings = *proof_->settings();
    record.header = std::exchange(block_header_, {});
    add_record(record);
    settings_ = proof_->settings();
  }
  if (piece_bytes_ >= kPieceBytes) {
    record.kind = Record::Kind::piece;
    record.count = std::exchange(piece_bytes_, 0);
    add_record(record);
  }
  const auto size = static_cast<std::size_t>(proof_->proven_bytes() - handed_out_);
  handed_out_ += size;
  if (ready_at_ == ready_.size()) {
    ready_.clear();
    ready_at_ = 0;
  }
  append(ready_, ByteView(waiting_).first(size));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(size));
}

Result<void> Member::end_block() {
  // Damage is found before anything is searched for.
  skip(1);
  const std::size_t padding = padding_of(encoded_bytes_ - block_start_);
  const std::uint64_t unpadded = encoded_bytes_ - block_start_ + check_bytes(check_);
  KIN_TRY_ASSIGN(const ByteView behind, in_.peek(padding + check_bytes(check_)));
  if (behind.size() < padding + check_bytes(check_)) return no_stream("cut off");
  if (!all_zero(behind.first(padding))) return no_stream("padding that is not zero");
  if (!equal(behind.subspan(padding), content_check_->finish()))
    return no_stream("a block with a wrong checksum");
  skip(behind.size());

  KIN_TRY(proof_->finish());
  hand_out();
  Record record;
  record.kind = Record::Kind::piece;
  record.count = piece_bytes_;
  if (piece_bytes_ > 0) add_record(record);
  record.kind = Record::Kind::block_end;
  add_record(record);
  if (!index_.add(unpadded, block_plain_bytes_)) return too_large("too many blocks");
  decoder_.reset();
  proof_.reset();
  where_ = Where::in_stream;
  return {};
}

Result<void> Member::end_stream() {
  const Bytes end = index_.finish(check_);
  KIN_TRY_ASSIGN(const ByteView there, in_.peek(end.size()));
  if (!equal(there, end)) return no_stream("an index that is not that of its blocks");
  skip(end.size());
  Record record;
  record.kind = Record::Kind::stream_end;
  add_record(record);
  where_ = Where::between_streams;
  return {};
}

}  // namespace kin::formats::xz
