// Shingleprints: the smallest hashes of all substrings of a length, as simhash(1) makes, keeps and compares
// them (Manasse; Broder). docs/detectors.md has the bytes of its files.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace kin {

enum class ShingleHash : std::uint8_t {
  crc32,  // as Debian's simhash
  rabin,  // the upper half of a Rabin fingerprint of 64 bits
};

inline constexpr unsigned kLeastShingleBytes = 4, kMostShingleBytes = 65535;
inline constexpr unsigned kMostShingleFeatures = 32768;  // that Debian's simhash can read

struct ShingleOptions {
  unsigned shingle_bytes = 8;
  unsigned features = 128;
  ShingleHash hash = ShingleHash::crc32;
};

struct Shingleprint {
  unsigned shingle_bytes = 0;
  ShingleHash hash = ShingleHash::crc32;
  std::vector<std::uint32_t> features;  // descending, each once; empty: the content is shorter than a shingle

  bool operator==(const Shingleprint&) const = default;
};

// Content comes in any pieces. One thread at a time.
class ShingleSampler {
 public:
  // The options are within their bounds.
  explicit ShingleSampler(const ShingleOptions& options);
  ~ShingleSampler();

  void add(ByteView bytes);
  Shingleprint finish();  // and the next content may come

 private:
  class Smallest;
  struct Crc32Roll;
  struct RabinRoll;
  template <class Roll>
  void sample(const Roll& roll, ByteView content);

  const ShingleOptions options_;
  std::unique_ptr<Crc32Roll> crc32_;
  std::unique_ptr<RabinRoll> rabin_;
  std::unique_ptr<Smallest> smallest_;
  Bytes pending_;  // what the next window may begin in, and what was added since
};

// Of features, of which `matches` are in both: the Jaccard measure of equally large samples, by the smaller.
double shingle_score(std::size_t matches, std::size_t a_features, std::size_t b_features);
std::size_t shingle_matches(const Shingleprint& a, const Shingleprint& b);

// The bytes of a .sim file. What comes from outside may be anything: corrupt for what no simhash wrote.
Bytes encode_shingleprint(const Shingleprint& print);
Result<Shingleprint> decode_shingleprint(ByteView bytes);
inline constexpr std::size_t kMostSimFileBytes = 4 + 4 * kMostShingleFeatures;

}  // namespace kin
