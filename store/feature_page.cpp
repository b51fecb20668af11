#include "store/feature_page.h"

#include "lib/base/wire.h"

#include <array>

namespace kin::store {
namespace {

constexpr std::uint8_t kStopped = 0;
constexpr std::uint8_t kCounted = Postings::kMost + 1;
constexpr std::size_t kNumberBytes = 4;  // of an ordinal, and of a count

void put(Bytes& to, std::uint64_t value, std::size_t width) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  to.insert(to.end(), bytes.begin(), bytes.begin() + width);
}

std::uint64_t load(const std::uint8_t* from, std::size_t width) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < width; ++i) out |= std::uint64_t{from[i]} << (8 * i);
  return out;
}

}  // namespace

void PageWriter::add(std::uint64_t key, const Postings& postings) {
  put(keys_, key, width_);
  if (postings.is_stopped()) {
    kinds_.push_back(kStopped);
    return;
  }
  const bool counted = postings.count > Postings::kMost;
  kinds_.push_back(counted ? kCounted : static_cast<std::uint8_t>(postings.size));
  if (counted) put(postings_, postings.count, kNumberBytes);
  for (std::uint32_t i = 0; i < postings.size; ++i) put(postings_, postings.newest_first[i], kNumberBytes);
}

ByteView PageWriter::finish() {
  WireWriter count;
  count.varint(kinds_.size());
  page_ = count.take();
  for (Bytes* column : {&keys_, &kinds_, &postings_}) {
    append(page_, *column);
    column->clear();
  }
  return page_;
}

PageView::PageView(ByteView page, unsigned width) : width_(width) {
  WireReader in(page);
  const std::size_t count = in.count(width + 1);
  keys_ = in.raw(count * width);
  kinds_ = in.raw(count);
  postings_ = in.raw(in.left());
  damaged_ = in.failed();
  if (damaged_) keys_ = kinds_ = postings_ = {};
}

std::uint64_t PageView::key(std::size_t at) const {
  const std::uint8_t* const from = keys_.data() + at * width_;
  return width_ == 3 ? load(from, 3) : width_ == 2 ? load(from, 2) : load(from, width_);
}

Postings PageView::postings(std::size_t at, std::size_t offset) const {
  Postings out;
  const std::uint8_t kind = kinds_[at];
  if (kind == kStopped) {
    out.count = Postings::kMostCommon + 1;
    return out;
  }
  const std::size_t size = kind * kNumberBytes;
  if (kind > kCounted || offset > postings_.size() || postings_.size() - offset < size) return out;
  const std::uint8_t* from = postings_.data() + offset;
  out.size = std::min<std::uint32_t>(kind, Postings::kMost);
  out.count = out.size;
  if (kind == kCounted) {
    out.count = std::clamp<std::uint32_t>(load(from, kNumberBytes), kCounted, Postings::kMostCommon);
    from += kNumberBytes;
  }
  for (std::uint32_t i = 0; i < out.size; ++i, from += kNumberBytes)
    out.newest_first[i] = static_cast<Ordinal>(load(from, kNumberBytes));
  return out;
}

Postings PageView::find(std::uint64_t wanted) const {
  std::size_t first = 0;
  std::size_t last = size();
  while (first < last) {
    const std::size_t middle = (first + last) / 2;
    if (key(middle) < wanted)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == size() || key(first) != wanted) return {};
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < first; ++i) before += kinds_[i];
  return postings(first, before * kNumberBytes);
}

void PageView::Cursor::next() { offset_ += page_->kinds_[at_++] * kNumberBytes; }

}  // namespace kin::store
