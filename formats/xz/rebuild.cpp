#include "formats/read_pieces.h"
#include "formats/xz/block_encoder.h"
#include "formats/xz/frame.h"
#include "formats/xz/limits.h"
#include "formats/xz/match_finder.h"
#include "formats/xz/member.h"
#include "formats/xz/record.h"

#include <algorithm>
#include <utility>

namespace kin::formats::xz {
namespace {

class Rebuilding : public ByteSource {
 public:
  Rebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections, SearchBudget* budget)
      : plain_(std::move(plain)),
        corrections_source_(std::move(corrections)),
        corrections_(*corrections_source_),
        budget_(budget) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    return read_pieces(
        into, ready_, at_, [&] { return ended_; }, [&] { return next(); });
  }

 private:
  static constexpr std::size_t kStepBytes = 64U << 10;

  static Error does_not_fit() {
    return Error(ErrorCode::corrupt, "the corrections of an xz stream do not fit its content");
  }

  Result<void> next() {
    ready_.clear();
    at_ = 0;
    if (piece_left_ > 0) return add_plain();
    if (!std::exchange(started_, true)) {
      KIN_TRY_ASSIGN(const ByteView version, corrections_.peek(1));
      if (version.empty()) return does_not_fit();
      if (version[0] != kVersion) return Error(ErrorCode::unsupported, "xz: corrections of another version");
      corrections_.skip(1);
    }
    KIN_TRY_ASSIGN(const Record record, read_record(corrections_));
    if (where_of(record.kind) != where_) return does_not_fit();
    switch (record.kind) {
      case Record::Kind::end:
        KIN_TRY(expect_end());
        ended_ = true;
        break;
      case Record::Kind::padding:
        ready_.resize(4 * record.count);
        break;
      case Record::Kind::stream:
        check_ = record.check;
        index_ = Index();
        ready_ = stream_header(check_);
        where_ = Where::in_stream;
        break;
      case Record::Kind::stream_end:
        ready_ = index_.finish(check_);
        where_ = Where::outside;
        break;
      case Record::Kind::new_block:
        settings_ = record.settings;
        return begin_block(record);
      case Record::Kind::block:
        return begin_block(record);
      case Record::Kind::piece:
        piece_left_ = record.count;
        break;
      case Record::Kind::block_end:
        return end_block();
    }
    return {};
  }

  enum class Where : std::uint8_t { outside, in_stream, in_block };
  static Where where_of(Record::Kind kind) {
    switch (kind) {
      case Record::Kind::end:
      case Record::Kind::padding:
      case Record::Kind::stream:
        return Where::outside;
      case Record::Kind::stream_end:
      case Record::Kind::block:
      case Record::Kind::new_block:
        return Where::in_stream;
      case Record::Kind::piece:
      case Record::Kind::block_end:
        break;
    }
    return Where::in_block;
  }

  // There is no more content, and nothing behind the last record. If it is a container, this is also when its
  // digest is compared.
  Result<void> expect_end() {
    std::uint8_t byte = 0;
    KIN_TRY_ASSIGN(const std::size_t got, plain_->read({&byte, 1}));
    KIN_TRY_ASSIGN(const ByteView behind, corrections_.peek(1));
    return got == 0 && behind.empty() ? Result<void>() : Result<void>(does_not_fit());
  }

  Result<void> begin_block(const Record& record) {
    if (!settings_) return does_not_fit();
    if (table_bytes(*settings_, 0) > kMostTableBytes) return does_not_fit();
    if (budget_ != nullptr) budget_->spend(kStepsOfEncoder);
    KIN_TRY_ASSIGN(encoder_, make_block_encoder(*settings_));
    content_check_.emplace(check_);
    ready_ = record.header;
    unpadded_bytes_ = record.header.size();
    plain_bytes_ = steps_ = 0;
    where_ = Where::in_block;
    return {};
  }

  Result<void> add_plain() {
    Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(piece_left_, kStepBytes)));
    KIN_TRY_ASSIGN(const std::size_t got, plain_->read(buffer));
    if (got < buffer.size()) return does_not_fit();
    piece_left_ -= got;
    plain_bytes_ += got;
    if (table_bytes(*settings_, plain_bytes_) > kMostTableBytes) return does_not_fit();
    content_check_->add(buffer);
    encoder_->add(buffer);
    ready_ = encoder_->take();
    unpadded_bytes_ += ready_.size();
    return spend();
  }

  Result<void> end_block() {
    encoder_->finish();
    KIN_TRY(spend());
    ready_ = encoder_->take();
    encoder_.reset();
    unpadded_bytes_ += ready_.size();
    ready_.resize(ready_.size() + padding_of(unpadded_bytes_));
    append(ready_, content_check_->finish());
    if (!index_.add(unpadded_bytes_ + check_bytes(check_), plain_bytes_)) return does_not_fit();
    where_ = Where::in_stream;
    return {};
  }

  Result<void> spend() {
    if (budget_ == nullptr) return {};
    budget_->spend(encoder_->steps() - std::exchange(steps_, encoder_->steps()));
    if (budget_->left() > 0) return {};
    return Error(ErrorCode::unsupported, "xz: takes too long to compress again");
  }

  const std::unique_ptr<ByteSource> plain_, corrections_source_;
  PeekSource corrections_;
  SearchBudget* const budget_;
  bool started_ = false, ended_ = false;
  Where where_ = Where::outside;
  CheckId check_ = CheckId::none;
  Index index_;
  std::optional<Settings> settings_;
  std::unique_ptr<BlockEncoder> encoder_;
  std::optional<ContentCheck> content_check_;
  std::uint64_t piece_left_ = 0, plain_bytes_ = 0, unpadded_bytes_ = 0, steps_ = 0;
  Bytes ready_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> rebuild(std::unique_ptr<ByteSource> plain,
                                    std::unique_ptr<ByteSource> corrections, SearchBudget* search) {
  return std::make_unique<Rebuilding>(std::move(plain), std::move(corrections), search);
}

}  // namespace kin::formats::xz
