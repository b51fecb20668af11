#include "lib/sync/block_delta.h"

#include "lib/base/wire.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kin::sync {
namespace {

constexpr std::size_t kLeastBlockBytes = 512, kMostBlockBytes = 1 << 20;
constexpr std::uint64_t kMostPosition = std::uint64_t{1} << 62;
constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;  // odd; any would do
constexpr std::size_t kFilterBitsPerBlock = 16;

// Of polynomials in kFactor: it moves on by a byte at the cost of two products.
std::uint64_t block_hash(ByteView block) {
  constexpr std::uint64_t two = kFactor * kFactor, three = two * kFactor, four = two * two;
  std::uint64_t out = 0;
  std::size_t i = 0;
  for (; i + 4 <= block.size(); i += 4)
    out = out * four + block[i] * three + block[i + 1] * two + block[i + 2] * kFactor + block[i + 3];
  for (; i < block.size(); ++i) out = out * kFactor + block[i];
  return out;
}

std::uint64_t factor_to(std::size_t power) {
  std::uint64_t out = 1, square = kFactor;
  for (; power > 0; power >>= 1, square *= square)
    if ((power & 1) != 0) out *= square;
  return out;
}

// New bytes, and then a copy of former ones.
struct Step {
  std::size_t new_begin = 0, new_bytes = 0;
  std::uint64_t begin = 0;
  std::size_t bytes = 0;
};

Bytes encode_steps(const std::vector<Step>& steps, ByteView content) {
  WireWriter out;
  std::uint64_t at = 0;
  for (const Step& step : steps) {
    out.blob(content.subspan(step.new_begin, step.new_bytes));
    if (step.bytes == 0) break;
    out.varint(step.bytes);
    out.varint(step.begin - at);
    at = step.begin + step.bytes;
  }
  return out.take();
}

}  // namespace

std::size_t block_bytes(std::uint64_t size) {
  std::size_t out = kLeastBlockBytes;
  while (out < kMostBlockBytes && std::uint64_t{out} * out < size) out *= 2;
  return out;
}

Bytes encode_signatures(const std::vector<BlockSignature>& signatures) {
  WireWriter out;
  for (const BlockSignature& signature : signatures) {
    out.raw(signature.object.bytes);
    out.varint(signature.size);
    for (const std::uint64_t block : signature.blocks) out.u64(block);
  }
  return out.take();
}

std::vector<BlockSignature> decode_signatures(ByteView bytes) {
  std::vector<BlockSignature> out;
  WireReader in(bytes);
  while (in.left() > 0) {
    BlockSignature& signature = out.emplace_back();
    const ByteView object = in.raw(sizeof(ObjectId));
    if (in.failed()) return {};
    signature.object = ObjectId::from_bytes(object);
    signature.size = in.varint();
    const std::uint64_t count = signature.size / block_bytes(signature.size);
    if (in.failed() || count > in.left() / sizeof(std::uint64_t)) return {};
    signature.blocks.resize(count);
    for (std::uint64_t& block : signature.blocks) block = in.u64();
  }
  return out;
}

SignatureBuilder::SignatureBuilder(std::uint64_t size) : block_bytes_(block_bytes(size)) { out_.size = size; }

void SignatureBuilder::add(ByteView bytes) {
  seen_ += bytes.size();
  if (seen_ > out_.size) return;  // it grows while it is read
  while (!bytes.empty()) {
    if (block_.empty() && bytes.size() >= block_bytes_) {
      out_.blocks.push_back(block_hash(bytes.first(block_bytes_)));
      bytes = bytes.subspan(block_bytes_);
      continue;
    }
    const std::size_t some = std::min(bytes.size(), block_bytes_ - block_.size());
    append(block_, bytes.first(some));
    bytes = bytes.subspan(some);
    if (block_.size() < block_bytes_) continue;
    out_.blocks.push_back(block_hash(block_));
    block_.clear();
  }
}

std::optional<BlockSignature> SignatureBuilder::finish(const ObjectId& object) {
  if (seen_ != out_.size || out_.blocks.empty()) return std::nullopt;
  out_.object = object;
  return std::move(out_);
}

BlockMatcher::BlockMatcher(const BlockSignature& former) : block_bytes_(block_bytes(former.size)) {
  filter_.resize(std::bit_ceil(former.blocks.size() * kFilterBitsPerBlock + 1));
  by_hash_.reserve(former.blocks.size());
  for (std::size_t block = 0; block < former.blocks.size(); ++block) {
    by_hash_.emplace_back(former.blocks[block], block);
    filter_[former.blocks[block] & (filter_.size() - 1)] = true;
  }
  std::sort(by_hash_.begin(), by_hash_.end());
}

std::optional<std::uint64_t> BlockMatcher::find(std::uint64_t hash) const {
  if (!filter_[hash & (filter_.size() - 1)]) return std::nullopt;
  const auto found = std::lower_bound(by_hash_.begin(), by_hash_.end(), std::pair(hash, next_block_));
  return found == by_hash_.end() || found->first != hash ? std::nullopt : std::optional(found->second);
}

BlockDifference BlockMatcher::next(ByteView content, bool is_end, std::size_t most_new_bytes) {
  const std::uint64_t leaving = factor_to(block_bytes_ - 1);
  BlockDifference out;
  std::vector<Step> steps;
  std::size_t at = 0, new_begin = 0;
  std::uint64_t hash = 0;  // of the block that begins at `at`, if it is known
  bool is_hashed = false, is_full = false;
  while (at + block_bytes_ <= content.size()) {
    if (!std::exchange(is_hashed, true)) hash = block_hash(content.subspan(at, block_bytes_));
    if (const auto block = find(hash)) {
      const std::uint64_t begin = *block * block_bytes_;
      if (!steps.empty() && new_begin == at && steps.back().begin + steps.back().bytes == begin)
        steps.back().bytes += block_bytes_;
      else
        steps.push_back({new_begin, at - new_begin, begin, block_bytes_});
      out.new_bytes += at - new_begin;
      next_block_ = *block + 1;
      at += block_bytes_;
      new_begin = at;
      is_hashed = false;
      continue;
    }
    is_full = out.new_bytes + (at - new_begin) >= most_new_bytes;
    if (is_full || at + block_bytes_ == content.size()) break;
    hash = (hash - content[at] * leaving) * kFactor + content[at + block_bytes_];
    ++at;
  }
  out.covers = is_end && !is_full ? content.size() : at;
  if (new_begin < out.covers) {
    steps.push_back({new_begin, out.covers - new_begin, 0, 0});
    out.new_bytes += out.covers - new_begin;
  }
  out.steps = encode_steps(steps, content);
  return out;
}

Result<Bytes> BlockPatcher::play(ByteView steps, std::size_t covers) {
  Bytes out;
  WireReader in(steps);
  std::uint64_t end = 0;  // of the copy before
  while (!in.failed() && in.left() > 0) {
    const ByteView fresh = in.blob();
    if (in.failed() || fresh.size() > covers - out.size()) return Error(ErrorCode::corrupt, "wrong steps");
    append(out, fresh);
    if (in.left() == 0) break;
    const std::uint64_t length = in.varint_up_to(covers - out.size());
    const std::uint64_t skip = in.varint_up_to(kMostPosition);
    if (in.failed() || length == 0 || end + skip > kMostPosition || end + skip < at_)
      return Error(ErrorCode::corrupt, "wrong steps");
    KIN_TRY(copy(end + skip, static_cast<std::size_t>(length), out));
    end += skip + length;
  }
  if (in.failed() || out.size() != covers) return Error(ErrorCode::corrupt, "wrong steps");
  return out;
}

Result<void> BlockPatcher::copy(std::uint64_t begin, std::size_t length, Bytes& out) {
  const auto read = [&](std::span<std::uint8_t> into) -> Result<void> {
    KIN_TRY_ASSIGN(const std::size_t got, former_->read(into));
    at_ += got;
    return got == into.size() ? Result<void>()
                              : Error(ErrorCode::wrong_base, "the former content is shorter");
  };
  Bytes passed;
  while (at_ < begin) {
    passed.resize(static_cast<std::size_t>(std::min<std::uint64_t>(begin - at_, 256 << 10)));
    KIN_TRY(read(passed));
  }
  out.resize(out.size() + length);
  return read(std::span(out).last(length));
}

}  // namespace kin::sync
