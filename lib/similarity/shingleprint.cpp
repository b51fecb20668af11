// The n smallest distinct hashes of all substrings of s bytes, at any s as fast as memory is read.
//
// simhash(1) hashes each substring anew, byte by byte, and keeps the smallest in a heap with a hash table
// beside it: 8 steps per byte that wait for each other, and more the longer a shingle is. Both hashes here
// are linear: what a byte does to the hash does not depend on the others. So the hash of the next substring
// is that of the last with one byte more, less what the byte that leaves has become after s steps, which is a
// table. That is two lookups per byte for any s. They wait for each other, so four rows of them run side by
// side, from four places of the buffer.
//
// Where most of them are too large to be kept, and the processor has AVX2, a filter tells which
// (shingle_filter.h), and only the others are hashed: by 4 instructions a byte instead of 17.
//
// What is not smaller than the largest that is kept is dropped by one comparison, and that is nearly all. The
// rest goes to a list that is sorted when it is twice as long as needed. Repeated content offers the same
// small hash again and again: a little table of what was offered lately keeps that out.
#include "lib/similarity/shingleprint.h"

#include "lib/base/crc32.h"
#include "lib/similarity/shingle_filter.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace kin {
namespace {

constexpr std::uint16_t kCrc32Magic = 0xcb01;  // Debian's; and with another hash, a number of our own
constexpr std::uint16_t kRabinMagic = 0xcb81;

// x^64 + ...: irreducible, and chosen at random, as Rabin asks.
constexpr std::uint64_t kRabinPolynomial = 0x955fb6763da53e7b;

constexpr std::array<std::uint64_t, 256> make_rabin_table() {
  std::array<std::uint64_t, 256> out{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t state = byte << 56;
    for (int bit = 0; bit < 8; ++bit) state = (state << 1) ^ (state >> 63 != 0 ? kRabinPolynomial : 0);
    out[byte] = state;
  }
  return out;
}

constexpr std::array<std::uint64_t, 256> kRabinTable = make_rabin_table();

// A filter that lets more than half of them pass is not quicker than to hash them all.
constexpr std::uint64_t kFilteredBelow = std::uint64_t{1} << 31;

}  // namespace

struct ShingleSampler::Crc32Roll {
  using State = std::uint32_t;
  explicit Crc32Roll(unsigned bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      State state = step(0, static_cast<std::uint8_t>(byte));
      for (unsigned i = 0; i < bytes; ++i) state = step(state, 0);
      leaving[byte] = state;
    }
    for (unsigned i = 0; i < bytes; ++i) constant = step(constant, 0);
    constant = ~constant;
    if (bytes > ShingleFilter::kMostBytes || !ShingleFilter::is_supported()) return;
    filter.emplace(bytes, constant, [&](unsigned at, std::uint8_t byte) {
      State state = step(0, byte);
      for (unsigned i = at + 1; i < bytes; ++i) state = step(state, 0);
      return state;
    });
  }
  State step(State state, std::uint8_t byte) const { return (state >> 8) ^ table[(state ^ byte) & 0xff]; }
  std::uint32_t value(State state) const { return state ^ constant; }

  const std::array<State, 256> table = crc32_table();
  std::array<State, 256> leaving{};
  State constant = 0xffffffff;  // what begins and ends a CRC, after as many bytes
  std::optional<ShingleFilter> filter;
};

struct ShingleSampler::RabinRoll {
  using State = std::uint64_t;
  explicit RabinRoll(unsigned bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      State state = step(0, static_cast<std::uint8_t>(byte));
      for (unsigned i = 0; i < bytes; ++i) state = step(state, 0);
      leaving[byte] = state;
    }
  }
  static State step(State state, std::uint8_t byte) {
    return (state << 8) ^ kRabinTable[(state >> 56 ^ byte) & 0xff];
  }
  std::uint32_t value(State state) const { return static_cast<std::uint32_t>(state >> 32); }

  std::array<State, 256> leaving{};
  std::optional<ShingleFilter> filter;  // none: files by it are made for kin alone, and few
};

class ShingleSampler::Smallest {
 public:
  explicit Smallest(std::size_t most) : most_(most) { values_.reserve(2 * most + kSlack); }

  std::uint64_t limit() const { return limit_; }  // what is not below it need not be offered

  bool is_new() const { return values_.empty() && limit_ == kNoLimit; }
  // Before all else: as if so many had been below it. False from confirm() means that they were not, and all
  // is as if nothing had been offered, but for another guess.
  void guess(std::size_t windows) {
    if (windows > 8 * most_) limit_ = kNoLimit / windows * 3 * most_;
    guessed_again_ = false;
  }
  bool confirm() {
    const std::uint64_t guessed = limit_;
    tidy();
    const std::size_t found = values_.size();
    if (found >= most_ || guessed == kNoLimit) return true;
    forget();
    // Much of it is repeated. Its hashes lie evenly all the same, unless there are but a few.
    if (!std::exchange(guessed_again_, true) && 8 * found > most_)
      limit_ = std::min(kNoLimit, guessed * 2 * most_ / found);
    return false;
  }

  void offer(std::uint32_t value) {
    std::uint64_t& lately = lately_[value % kLately];
    const std::uint64_t stamped = generation_ << 32 | value;
    if (lately == stamped) return;
    lately = stamped;
    values_.push_back(value);
    if (values_.size() == 2 * most_ + kSlack) tidy();
  }

  std::vector<std::uint32_t> take() {
    tidy();
    std::vector<std::uint32_t> out(values_.rbegin(), values_.rend());
    forget();
    return out;
  }

 private:
  static constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 32;
  static constexpr std::size_t kSlack = 256, kLately = 4096;

  void forget() {
    values_.clear();
    limit_ = kNoLimit;
    ++generation_;
  }

  void tidy() {
    sort();
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
    if (values_.size() < most_) return;
    values_.resize(most_);
    limit_ = values_.back();
  }

  // Hashes lie evenly below the limit: by their first bits into buckets of a few each. Files of 16 KB on
  // average are so hashed at 610 MB/s instead of 350.
  void sort() {
    constexpr std::size_t kBuckets = 256;
    const int shift = std::max(0, static_cast<int>(std::bit_width(limit_)) - 8);
    const auto bucket_of = [&](std::uint32_t value) {
      return std::min<std::uint64_t>(std::uint64_t{value} >> shift, kBuckets - 1);
    };
    std::array<std::uint32_t, kBuckets + 1> begins{};
    for (const std::uint32_t value : values_) ++begins[bucket_of(value) + 1];
    for (std::size_t i = 0; i < kBuckets; ++i) begins[i + 1] += begins[i];
    std::array<std::uint32_t, kBuckets + 1> ends = begins;
    sorted_.resize(values_.size());
    for (const std::uint32_t value : values_) sorted_[ends[bucket_of(value)]++] = value;
    for (std::size_t i = 0; i < kBuckets; ++i)
      if (begins[i + 1] - begins[i] > 1)
        std::sort(sorted_.begin() + begins[i], sorted_.begin() + begins[i + 1]);
    values_.swap(sorted_);
  }

  const std::size_t most_;
  std::uint64_t limit_ = kNoLimit;
  bool guessed_again_ = false;
  std::vector<std::uint32_t> values_, sorted_;
  std::uint64_t generation_ = 1;  // of contents: what was offered before is not lately
  std::array<std::uint64_t, kLately> lately_{};
};

ShingleSampler::ShingleSampler(const ShingleOptions& options)
    : options_(options), smallest_(std::make_unique<Smallest>(options.features)) {
  if (options.hash == ShingleHash::crc32)
    crc32_ = std::make_unique<Crc32Roll>(options.shingle_bytes);
  else
    rabin_ = std::make_unique<RabinRoll>(options.shingle_bytes);
}

ShingleSampler::~ShingleSampler() = default;

void ShingleSampler::add(ByteView bytes) {
  // The first piece, which most content has no other of, is not copied.
  if (!pending_.empty() || bytes.size() < options_.shingle_bytes) {
    append(pending_, bytes);
    bytes = pending_;
  }
  if (bytes.size() < options_.shingle_bytes) return;
  const auto sample_all = [&] { return crc32_ ? sample(*crc32_, bytes) : sample(*rabin_, bytes); };
  const bool first = smallest_->is_new();
  if (first) smallest_->guess(bytes.size() - options_.shingle_bytes + 1);
  sample_all();
  while (first && !smallest_->confirm()) sample_all();
  const ByteView last = bytes.last(options_.shingle_bytes - 1);
  if (pending_.empty())
    pending_.assign(last.begin(), last.end());
  else
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(last.size()));
}

// All substrings of the content.
template <class Roll>
void ShingleSampler::sample(const Roll& roll, ByteView content) {
  constexpr std::size_t kRows = 4;
  const std::size_t bytes = options_.shingle_bytes, windows = content.size() - bytes + 1;
  const std::uint8_t* const data = content.data();
  Smallest& smallest = *smallest_;
  const auto begin = [&](std::size_t at) {
    typename Roll::State state{};
    for (std::size_t i = 0; i < bytes; ++i) state = roll.step(state, data[at + i]);
    return state;
  };
  const auto offer_if_small = [&](std::uint32_t value) {
    if (value < smallest.limit()) [[unlikely]]
      smallest.offer(value);
  };
  const auto look_at = [&](typename Roll::State state) { offer_if_small(roll.value(state)); };
  if (roll.filter && smallest.limit() <= kFilteredBelow) {
    std::size_t at = 0;
    for (; at + ShingleFilter::kShingles <= windows && smallest.limit() > 0; at += ShingleFilter::kShingles) {
      const auto most = static_cast<std::uint8_t>((smallest.limit() - 1) >> 24);
      for (std::uint32_t passes = roll.filter->candidates(data + at, most); passes != 0; passes &= passes - 1)
        offer_if_small(roll.filter->hash(data + at + static_cast<std::size_t>(std::countr_zero(passes))));
    }
    for (; at < windows; ++at) offer_if_small(roll.filter->hash(data + at));
    return;
  }
  const std::size_t row = windows / kRows;
  if (row > 0) {
    const std::uint8_t* const a = data;
    const std::uint8_t* const b = data + row;
    const std::uint8_t* const c = data + 2 * row;
    const std::uint8_t* const d = data + 3 * row;
    typename Roll::State sa = begin(0), sb = begin(row), sc = begin(2 * row), sd = begin(3 * row);
    for (std::size_t i = 0;; ++i) {
      look_at(sa);
      look_at(sb);
      look_at(sc);
      look_at(sd);
      if (i + 1 == row) break;
      sa = roll.step(sa, a[i + bytes]) ^ roll.leaving[a[i]];
      sb = roll.step(sb, b[i + bytes]) ^ roll.leaving[b[i]];
      sc = roll.step(sc, c[i + bytes]) ^ roll.leaving[c[i]];
      sd = roll.step(sd, d[i + bytes]) ^ roll.leaving[d[i]];
    }
  }
  for (std::size_t at = row * kRows; at < windows; ++at) look_at(begin(at));
}

Shingleprint ShingleSampler::finish() {
  pending_.clear();
  return {options_.shingle_bytes, options_.hash, smallest_->take()};
}

std::size_t shingle_matches(const Shingleprint& a, const Shingleprint& b) {
  std::size_t matches = 0;
  for (std::size_t i = 0, j = 0; i < a.features.size() && j < b.features.size();) {
    const std::uint32_t left = a.features[i], right = b.features[j];
    matches += left == right;
    i += left >= right;
    j += right >= left;
  }
  return matches;
}

double shingle_score(std::size_t matches, std::size_t a_features, std::size_t b_features) {
  const std::size_t fewer = std::min(a_features, b_features);
  return fewer == 0 ? 0 : static_cast<double>(matches) / static_cast<double>(2 * fewer - matches);
}

Bytes encode_shingleprint(const Shingleprint& print) {
  Bytes out;
  out.reserve(4 + 4 * print.features.size());
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  put(print.hash == ShingleHash::crc32 ? kCrc32Magic : kRabinMagic, 2);
  put(print.shingle_bytes, 2);
  for (const std::uint32_t feature : print.features) put(feature, 4);
  return out;
}

Result<Shingleprint> decode_shingleprint(ByteView bytes) {
  const auto wrong = [](const char* why) { return Error(ErrorCode::corrupt, why); };
  const auto get = [&](std::size_t at, std::size_t size) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < size; ++i) out = out << 8 | bytes[at + i];
    return out;
  };
  if (bytes.size() < 2 || (get(0, 2) != kCrc32Magic && get(0, 2) != kRabinMagic))
    return wrong("not a hash file of simhash (bad file version)");
  if (bytes.size() < 8 || bytes.size() % 4 != 0) return wrong("a hash file that is cut short");
  if (bytes.size() > kMostSimFileBytes) return wrong("a hash file with more features than can be compared");
  Shingleprint out;
  out.hash = get(0, 2) == kCrc32Magic ? ShingleHash::crc32 : ShingleHash::rabin;
  out.shingle_bytes = get(2, 2);
  if (out.shingle_bytes < kLeastShingleBytes) return wrong("a hash file with an impossible shingle size");
  for (std::size_t at = 4; at < bytes.size(); at += 4) {
    if (!out.features.empty() && get(at, 4) >= out.features.back())
      return wrong("a hash file whose features are out of order");
    out.features.push_back(get(at, 4));
  }
  return out;
}

}  // namespace kin
