#include "formats/deflate_member.h"

#include "formats/deflate/piece_header.h"
#include "formats/deflate/rebuilder.h"
#include "formats/read_pieces.h"
#include "lib/base/wire.h"

#include <utility>

namespace kin::formats {
namespace {

constexpr std::size_t kVarintBytes = 10;

bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported;
}

class Rebuilding : public ByteSource {
 public:
  Rebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections, SearchBudget* search)
      : plain_(std::move(plain)),
        corrections_source_(std::move(corrections)),
        corrections_(*corrections_source_),
        rebuilder_(search) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    return read_pieces(
        into, ready_, at_, [&] { return rebuilder_.finished(); }, [&] { return next_piece(); });
  }

 private:
  static Error damaged() {
    return Error(ErrorCode::corrupt, "the corrections of a deflate stream are damaged");
  }

  // Not from a claimed size: memory is taken as bytes come.
  static Result<Bytes> read_exactly(ByteSource& source, std::uint64_t size) {
    constexpr std::size_t kStep = 1 << 20;
    Bytes out;
    while (out.size() < size) {
      const std::size_t have = out.size();
      out.resize(have + static_cast<std::size_t>(std::min<std::uint64_t>(kStep, size - have)));
      KIN_TRY_ASSIGN(const std::size_t got, source.read(std::span(out).subspan(have)));
      if (have + got < out.size()) return damaged();
    }
    return out;
  }

  Result<void> next_piece() {
    KIN_TRY_ASSIGN(const ByteView head, corrections_.peek(2 * kVarintBytes));
    WireReader in(head);
    const std::uint64_t plain_size = in.varint_up_to(deflate::kMostPiecePlain);
    const std::uint64_t size = in.varint_up_to(deflate::kMostPieceReconstruction);
    if (in.failed()) return damaged();
    corrections_.skip(in.position());
    KIN_TRY_ASSIGN(const Bytes reconstruction, read_exactly(corrections_, size));
    KIN_TRY_ASSIGN(const Bytes plain, read_exactly(*plain_, plain_size));
    KIN_TRY_ASSIGN(ready_, rebuilder_.add(plain, reconstruction));
    // A piece has a block at least; without this, forged ones could go on for ever.
    if (ready_.empty()) return damaged();
    at_ = 0;
    return {};
  }

  const std::unique_ptr<ByteSource> plain_, corrections_source_;
  PeekSource corrections_;
  deflate::Rebuilder rebuilder_;
  Bytes ready_;
  std::size_t at_ = 0;
};

}  // namespace

namespace {

deflate::OpenLimits open_limits(const ContainerLimits& limits) {
  deflate::OpenLimits out;
  out.proven_later = limits.proven_later;
  out.search = limits.search;
  // Less further down: the streams that this one is in wait meanwhile, with a block of theirs.
  out.block_bytes = std::min(out.block_bytes, 2 * limits.memory_bytes);
  return out;
}

}  // namespace

DeflateMember::DeflateMember(PeekSource& in, std::uint64_t most_raw, const ContainerLimits& limits,
                             std::shared_ptr<const deflate::Opener::Hint> hint)
    : in_(in),
      raw_left_(most_raw),
      limits_(limits),
      opener_([this](std::span<std::uint8_t> into) { return read_raw(into); }, open_limits(limits),
              std::move(hint)) {}

Result<std::size_t> DeflateMember::read_raw(std::span<std::uint8_t> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), raw_left_)));
  KIN_TRY_ASSIGN(const std::size_t got, in_.read(into));
  raw_left_ -= got;
  if (preparing_) append(raw_, into.first(got));
  return got;
}

Result<void> DeflateMember::next_piece() {
  KIN_TRY_ASSIGN(std::optional<deflate::Piece> piece, opener_.next());
  if (!piece) {
    ended_ = true;
    in_.give_back(opener_.unread());
    return {};
  }
  WireWriter sizes;
  sizes.varint(piece->plain.size());
  sizes.varint(piece->reconstruction.size());
  append(corrections_, sizes.bytes());
  append(corrections_, piece->reconstruction);
  plain_bytes_ += piece->plain.size();
  if (!piece->plain.empty()) plain_.push_back(std::move(piece->plain));
  return {};
}

Result<bool> DeflateMember::prepare() {
  preparing_ = true;
  while (!ended_ && raw_.size() < limits_.memory_bytes && plain_bytes_ < 4 * limits_.memory_bytes) {
    const auto got = next_piece();
    if (got) continue;
    if (!is_refusal(got.error())) return got.error();
    tried_bytes_ = raw_.size() + plain_bytes_;
    in_.give_back(raw_);
    raw_.clear();
    return false;
  }
  preparing_ = false;
  raw_ = Bytes();
  return true;
}

Result<std::size_t> DeflateMember::read(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (plain_.empty()) {
      if (ended_) break;
      KIN_TRY(next_piece());
      continue;
    }
    const Bytes& front = plain_.front();
    const std::size_t size = std::min(into.size() - done, front.size() - at_);
    std::copy_n(front.begin() + static_cast<std::ptrdiff_t>(at_), size,
                into.begin() + static_cast<std::ptrdiff_t>(done));
    at_ += size;
    done += size;
    if (at_ < front.size()) continue;
    plain_bytes_ -= front.size();
    plain_.pop_front();
    at_ = 0;
  }
  return done;
}

Bytes DeflateMember::take_corrections() { return std::exchange(corrections_, {}); }

std::unique_ptr<ByteSource> rebuild_deflate(std::unique_ptr<ByteSource> plain,
                                            std::unique_ptr<ByteSource> corrections, SearchBudget* search) {
  return std::make_unique<Rebuilding>(std::move(plain), std::move(corrections), search);
}

}  // namespace kin::formats
