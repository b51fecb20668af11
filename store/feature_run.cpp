#include "store/feature_run.h"

#include "lib/base/wire.h"

#include <array>
#include <bit>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::store {
namespace {

constexpr std::uint64_t kPageFeatures = 256;  // at most, on average
constexpr unsigned kMostPageBits = 28;
constexpr std::size_t kFilterChunk = 4096;       // blocks
constexpr std::uint64_t kUnfilteredKeys = 1024;  // that are looked for in pages before the filter is loaded
constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::size_t kChecksumBytes = 4;  // behind each page

// Against accidents only, and four times as fast as reading from the kernel's cache.
std::uint64_t checksum(ByteView bytes, std::uint64_t seed) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 4> lanes = {seed, ~seed, seed ^ kFactor, bytes.size()};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + at + 8 * i, 8);
      lanes[i] = std::rotl((lanes[i] ^ word) * kFactor, 29);
    }
  for (; at < bytes.size(); ++at) lanes[at % 4] = std::rotl((lanes[at % 4] ^ bytes[at]) * kFactor, 29);
  std::uint64_t out = 0;
  for (const std::uint64_t lane : lanes) out = (out ^ lane ^ lane >> 32) * kFactor;
  return out ^ out >> 32;
}

template <class T, class Allocator>
ByteView bytes_of(const std::vector<T, Allocator>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T, class Allocator>
std::span<std::uint8_t> bytes_of(std::vector<T, Allocator>& values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// The page within its bytes in the file, if they are whole.
std::optional<PageView> open_page(ByteView bytes, std::uint64_t number, unsigned width) {
  if (bytes.empty()) return PageView();
  if (bytes.size() < kChecksumBytes) return std::nullopt;
  const ByteView page = bytes.first(bytes.size() - kChecksumBytes);
  std::uint32_t expected;
  std::memcpy(&expected, page.data() + page.size(), kChecksumBytes);
  if (static_cast<std::uint32_t>(checksum(page, number)) != expected) return std::nullopt;
  const PageView out(page, width);
  if (out.is_damaged()) return std::nullopt;
  return out;
}

}  // namespace

Bytes FeatureRunShape::encode() const {
  WireWriter out;
  out.varint(keys);
  out.varint(page_bits);
  out.varint(filter_blocks);
  out.varint(pages_end);
  out.u64(filter_checksum);
  out.u64(directory_checksum);
  return out.take();
}

std::optional<FeatureRunShape> FeatureRunShape::decode(ByteView bytes) {
  FeatureRunShape out;
  WireReader in(bytes);
  out.keys = in.varint_up_to(std::uint64_t{1} << kFeatureBits);
  out.page_bits = static_cast<unsigned>(in.varint_up_to(kMostPageBits));
  out.filter_blocks = in.varint_up_to(FeatureFilter::kMostBlocks);
  out.pages_end = in.varint_up_to(std::uint64_t{1} << 48);
  out.filter_checksum = in.u64();
  out.directory_checksum = in.u64();
  if (!in.finish("run") || out.filter_blocks == 0 || out.pages_end < out.filter_bytes()) return std::nullopt;
  return out;
}

FeatureRunWriter::FeatureRunWriter(std::string path, std::uint64_t most_keys, std::uint64_t filter_bytes)
    : path_(std::move(path)), page_(1) {
  shape_.page_bits =
      std::min(static_cast<unsigned>(std::bit_width(most_keys / kPageFeatures)), kMostPageBits);
  shape_.filter_blocks =
      std::clamp<std::uint64_t>(filter_bytes / sizeof(FilterBlock), 1, FeatureFilter::kMostBlocks);
  shape_.pages_end = shape_.filter_bytes();
  page_ = PageWriter(key_width(shape_.suffix_bits()));
  directory_.reserve(shape_.pages() + 1);
  pages_.reserve(kBufferBytes + (64 << 10));
  start_chunk();
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file_) result_ = errno_error("cannot create", path_);
}

FeatureRunWriter::~FeatureRunWriter() {
  if (!finished_) ::unlink(path_.c_str());
}

void FeatureRunWriter::write(ByteView bytes, std::uint64_t offset) {
  if (result_) result_ = write_all_at(file_.get(), bytes, offset, path_);
}

void FeatureRunWriter::add(FeatureKey key, const Postings& postings) {
  if (shape_.keys > 0 && key <= last_key_ && result_)
    result_ = feature_cache_damaged();  // the run that it comes from
  if (!result_) return;
  const std::uint64_t page = shape_.page_of(key);
  if (page != page_number_) finish_page();
  page_number_ = page;
  page_.add(shape_.suffix_of(key), postings);
  const std::size_t block = FeatureFilter::place(key, shape_.filter_blocks);
  while (block >= chunk_start_ + chunk_.size()) finish_chunk();
  chunk_[block - chunk_start_].insert(key);
  last_key_ = key;
  ++shape_.keys;
}

void FeatureRunWriter::finish_page() {
  // Also the beginnings of pages without keys, which are skipped.
  while (directory_.size() <= page_number_) directory_.push_back(shape_.pages_end);
  if (page_.empty()) return;
  const ByteView page = page_.finish();
  const auto check = static_cast<std::uint32_t>(checksum(page, page_number_));
  append(pages_, page);
  append(pages_, {reinterpret_cast<const std::uint8_t*>(&check), kChecksumBytes});
  shape_.pages_end += page.size() + kChecksumBytes;
  if (pages_.size() >= kBufferBytes) flush_pages();
}

void FeatureRunWriter::flush_pages() {
  write(pages_, shape_.pages_end - pages_.size());
  pages_.clear();
}

void FeatureRunWriter::start_chunk() {
  chunk_.assign(std::min<std::uint64_t>(kFilterChunk, shape_.filter_blocks - chunk_start_), FilterBlock());
}

void FeatureRunWriter::finish_chunk() {
  shape_.filter_checksum = checksum(bytes_of(std::as_const(chunk_)), shape_.filter_checksum);
  write(bytes_of(std::as_const(chunk_)), chunk_start_ * sizeof(FilterBlock));
  chunk_start_ += chunk_.size();
  start_chunk();
}

Result<FeatureRunShape> FeatureRunWriter::finish() {
  finish_page();
  flush_pages();
  while (!chunk_.empty() && result_) finish_chunk();
  directory_.resize(shape_.pages() + 1, shape_.pages_end);
  shape_.directory_checksum = checksum(bytes_of(std::as_const(directory_)), 0);
  write(bytes_of(std::as_const(directory_)), shape_.pages_end);
  KIN_TRY(std::move(result_));
  KIN_TRY(file_.close(path_));
  finished_ = true;
  return shape_;
}

Result<FeatureRun> FeatureRun::open(const std::string& path, const FeatureRunShape& shape) {
  FeatureRun out;
  out.path_ = path;
  out.shape_ = shape;
  out.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!out.file_ || ::fstat(out.file_.get(), &status) != 0) return errno_error("cannot open", path);
  if (static_cast<std::uint64_t>(status.st_size) != shape.pages_end + shape.directory_bytes())
    return feature_cache_damaged();
  // Pages are read one by one, in no order that the kernel could foresee.
  ::posix_fadvise(out.file_.get(), 0, 0, POSIX_FADV_RANDOM);
  return out;
}

Result<void> FeatureRun::read_exactly(std::span<std::uint8_t> into, std::uint64_t offset) const {
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to_at(file_.get(), into, offset, path_));
  if (size != into.size()) return feature_cache_damaged();
  return {};
}

Result<void> FeatureRun::load_directory() {
  if (!directory_.empty()) return {};
  std::vector<std::uint64_t> directory(shape_.pages() + 1);
  KIN_TRY(read_exactly(bytes_of(directory), shape_.pages_end));
  if (checksum(bytes_of(std::as_const(directory)), 0) != shape_.directory_checksum)
    return feature_cache_damaged();
  if (directory.front() != shape_.filter_bytes() || directory.back() != shape_.pages_end ||
      !std::is_sorted(directory.begin(), directory.end()))
    return feature_cache_damaged();
  directory_ = std::move(directory);
  return {};
}

Result<void> FeatureRun::load_filter() {
  if (!filter_.empty()) return {};
  filter_ = FeatureFilter(shape_.filter_blocks);
  FilterBlocks& blocks = filter_.blocks();
  KIN_TRY(read_exactly(bytes_of(blocks), 0));
  std::uint64_t check = 0;
  for (std::size_t at = 0; at < blocks.size(); at += kFilterChunk) {
    const std::size_t count = std::min(kFilterChunk, blocks.size() - at);
    check = checksum(
        bytes_of(std::as_const(blocks)).subspan(at * sizeof(FilterBlock), count * sizeof(FilterBlock)),
        check);
  }
  if (check == shape_.filter_checksum) return {};
  // It says nothing that the pages do not.
  filter_ = FeatureFilter(shape_.filter_blocks);
  Cursor all(*this);
  for (; !all.done(); all.next()) filter_.insert(all.key());
  return all.result();
}

// The filter of 16 million keys takes longer to read than a thousand pages. Who asks for the kin of a
// single file does without it.
Result<void> FeatureRun::read(std::span<const FeatureKey> keys, std::span<Postings> into) {
  constexpr std::size_t kAhead = 16;
  KIN_TRY(load_directory());
  asked_keys_ += keys.size();
  const bool filtered = !filter_.empty() || asked_keys_ > kUnfilteredKeys;
  if (filtered) KIN_TRY(load_filter());
  const unsigned width = key_width(shape_.suffix_bits());
  std::uint64_t viewed = shape_.pages();  // none
  PageView view;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (filtered && i + kAhead < keys.size()) filter_.touch(keys[i + kAhead]);
    if (filtered && !filter_.may_contain(keys[i])) continue;
    const std::uint64_t page = shape_.page_of(keys[i]);
    if (page != viewed) {
      buffer_.resize(directory_[page + 1] - directory_[page]);
      KIN_TRY(read_exactly(buffer_, directory_[page]));
      const std::optional<PageView> opened = open_page(buffer_, page, width);
      if (!opened) return feature_cache_damaged();
      view = *opened;
      viewed = page;
    }
    into[i].append_older(view.find(shape_.suffix_of(keys[i])));
  }
  return {};
}

FeatureRun::Cursor::Cursor(FeatureRun& run) : run_(run), result_(run.load_directory()) { start_page(); }

void FeatureRun::Cursor::next() {
  cursor_.next();
  if (cursor_.done())
    start_page();
  else
    key_ = first_ | cursor_.key();
}

// Reads the next page, and those behind it as far as they fit.
void FeatureRun::Cursor::fill() {
  const std::vector<std::uint64_t>& directory = run_.directory_;
  std::uint64_t end = page_number_ + 1;
  while (end < run_.shape_.pages() && directory[end + 1] - directory[page_number_] <= kBufferBytes) ++end;
  buffer_start_ = directory[page_number_];
  buffer_.resize(directory[end] - buffer_start_);
  result_ = run_.read_exactly(buffer_, buffer_start_);
}

void FeatureRun::Cursor::start_page() {
  const std::vector<std::uint64_t>& directory = run_.directory_;
  page_ = PageView();
  while (result_ && page_.size() == 0 && page_number_ < run_.shape_.pages()) {
    if (directory[page_number_ + 1] > buffer_start_ + buffer_.size()) fill();
    if (!result_) break;
    const ByteView bytes = ByteView(buffer_).subspan(directory[page_number_] - buffer_start_,
                                                     directory[page_number_ + 1] - directory[page_number_]);
    const auto opened = open_page(bytes, page_number_, key_width(run_.shape_.suffix_bits()));
    if (!opened) {
      result_ = feature_cache_damaged();
      break;
    }
    page_ = *opened;
    first_ = page_number_++ << run_.shape_.suffix_bits();
  }
  cursor_ = PageView::Cursor(&page_);
  done_ = !result_ || page_.size() == 0;
  if (!done_) key_ = first_ | cursor_.key();
}

}  // namespace kin::store
