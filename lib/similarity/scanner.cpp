#include "lib/similarity/scanner.h"

#include "lib/base/check.h"
#include "lib/base/wire.h"

#include <algorithm>

namespace kin {
namespace {

constexpr std::uint64_t kSampleBelow = std::uint64_t{1} << (64 - 6);
constexpr std::uint64_t kCutBelow = std::uint64_t{1} << (64 - 20);

// Every bit of the result depends on every bit of the hash (the finaliser of MurmurHash3).
std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  h ^= h >> 33;
  return h;
}

}  // namespace

// The smallest distinct values seen, ascending.
class Scanner::Smallest {
 public:
  explicit Smallest(unsigned most) : most_(most) {}

  void add(std::uint64_t value) {
    if (size_ == most_ && value >= values_[size_ - 1]) return;
    std::uint64_t* const end = values_.data() + size_;
    std::uint64_t* const at = std::lower_bound(values_.data(), end, value);
    if (at != end && *at == value) return;
    if (size_ < most_) ++size_;
    std::copy_backward(at, values_.data() + size_ - 1, values_.data() + size_);
    *at = value;
  }

  // The order is by whole values; the low bits, which are kept, say nothing about it.
  Sketch features(unsigned most) const {
    Sketch out;
    out.reserve(std::min(size_, most));
    for (unsigned i = 0; i < std::min(size_, most); ++i) {
      const Feature feature = values_[i] & ((Feature{1} << kFeatureBits) - 1);
      if (std::find(out.begin(), out.end(), feature) == out.end()) out.push_back(feature);
    }
    return out;
  }

 private:
  const unsigned most_;
  unsigned size_ = 0;
  std::array<std::uint64_t, kMostFeatures> values_;
};

Scanner::Scanner(const Key& seed, unsigned features, std::size_t window)
    : features_(features), window_(window) {
  KIN_CHECK(features >= kLeastFeatures && features <= kMostFeatures);
  KIN_CHECK(window == 8 || window == 16 || window == 32 || window == 64);
  for (std::size_t i = 0; i < table_.size(); i += 4) {
    const std::uint8_t counter = static_cast<std::uint8_t>(i);
    const Digest words = keyed_hash(seed, ByteView(&counter, 1));
    WireReader reader(words);
    for (std::size_t j = 0; j < 4; ++j) table_[i + j] = reader.u64();
  }
}

template <class With>
auto Scanner::by_window(const With& with) const {
  switch (window_) {
    case 8:
      return with.template operator()<8>();
    case 16:
      return with.template operator()<4>();
    case 64:
      return with.template operator()<1>();
    default:
      return with.template operator()<2>();
  }
}

// The windows that end in [begin, end), for which no cut is looked for. Two at a time from two ends: each
// hash waits for the one before it, so that two rows of them take little longer than one.
template <unsigned kShift>
void Scanner::sample(ByteView bytes, std::size_t begin, std::size_t end, Smallest& smallest) const {
  const std::uint8_t* const data = bytes.data();
  const std::size_t half = (end - begin) / 2;
  const std::size_t middle = begin + half;
  std::uint64_t low = hash_before<kShift>(data, begin), high = hash_before<kShift>(data, middle);
  for (std::size_t i = 0; i < half; ++i) {
    low = (low << kShift) + table_[data[begin + i]];
    high = (high << kShift) + table_[data[middle + i]];
    if (low < kSampleBelow) [[unlikely]]
      smallest.add(mix(low));
    if (high < kSampleBelow) [[unlikely]]
      smallest.add(mix(high));
  }
  if (middle + half == end) return;
  high = (high << kShift) + table_[data[end - 1]];
  if (high < kSampleBelow) smallest.add(mix(high));
}

// Of the bytes before `at`, one less than a window has.
template <unsigned kShift>
std::uint64_t Scanner::hash_before(const std::uint8_t* data, std::size_t at) const {
  std::uint64_t h = 0;
  for (std::size_t i = at - (64 / kShift - 1); i < at; ++i) h = (h << kShift) + table_[data[i]];
  return h;
}

unsigned Scanner::features_of(std::size_t bytes) const {
  return static_cast<unsigned>(std::clamp<std::size_t>(bytes / kBytesPerFeature, kLeastFeatures, features_));
}

Sketch Scanner::sketch(ByteView bytes) const {
  if (bytes.size() < window_) return {};
  Smallest smallest(features_);
  by_window([&]<unsigned kShift>() { sample<kShift>(bytes, window_ - 1, bytes.size(), smallest); });
  return smallest.features(features_of(bytes.size()));
}

Scanner::Segment Scanner::segment(ByteView bytes) const {
  if (bytes.size() < kLeastBytes) return {bytes.size(), sketch(bytes)};
  return by_window([&]<unsigned kShift>() { return long_segment<kShift>(bytes); });
}

template <unsigned kShift>
Scanner::Segment Scanner::long_segment(ByteView bytes) const {
  const std::size_t most = std::min(bytes.size(), kMostBytes);
  Smallest smallest(features_);
  sample<kShift>(bytes, window_ - 1, kLeastBytes - 1, smallest);
  std::uint64_t h = hash_before<kShift>(bytes.data(), kLeastBytes - 1);
  std::size_t size = kLeastBytes - 1;
  while (size < most) {
    h = (h << kShift) + table_[bytes[size++]];
    if (h >= kSampleBelow) [[likely]]
      continue;
    smallest.add(mix(h));
    if (h < kCutBelow) break;
  }
  return {size, smallest.features(features_of(size))};
}

}  // namespace kin
