// sif: approximate fingerprints (Manber, 1994).
//
// The problem: to find files that have pieces in common, though all around these differs and they lie at
// other places. The idea: fingerprints of all 50-byte substrings, by a polynomial that rolls from one to the
// next, and of these the ones whose last 8 bits are zero. The choice depends on the 50 bytes alone, so that
// equal pieces give equal choices wherever they are. One in 256 is kept, and the more the larger the file is:
// a small file that is part of a large one is found, which sketches of fixed size miss.
//
// Once a fingerprint is chosen, the next may begin only behind its 50 bytes, so that 70 underlines do not
// make 21 of the same. All positions are rolled over nevertheless: to begin anew behind each one would cost
// more. The other way to choose, by anchors, is sif_anchor_detector.cpp.
//
// A checksum of the whole file is kept beside, for equal files. The similarity may exceed 100 %, and is not
// symmetric: it is how much of the one is in the other.
#include "lib/base/crc32.h"
#include "lib/similarity/sif_fingerprint.h"

#include <array>

namespace kin {
namespace {

constexpr std::uint64_t kSifChosenMask = 0xff;

constexpr std::array<std::uint64_t, 256> make_sif_leaving() {
  std::uint64_t power = 1;
  for (std::size_t i = 0; i < kSifBytes; ++i) power *= SifPolynomial::kPrime;
  std::array<std::uint64_t, 256> out{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) out[byte] = (byte + 1) * power;
  return out;
}

// What a byte is worth when it leaves the window.
constexpr std::array<std::uint64_t, 256> kSifLeaving = make_sif_leaving();

class SifDetector : public Detector {
 public:
  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    std::uint64_t free_from = 0;  // where a fingerprint may begin
    constexpr std::size_t kOverlap = kSifBytes - 1;
    KIN_TRY(for_each_piece(content, kOverlap, [&](ByteView bytes, std::uint64_t offset) {
      if (offset == 0) out.kind = sif_kind(bytes);
      out.checksum = crc32(offset == 0 ? bytes : bytes.subspan(kOverlap), out.checksum);
      if (bytes.size() < kSifBytes) return;
      const std::uint8_t* const data = bytes.data();
      std::uint64_t fingerprint = SifPolynomial::of(data);
      for (std::size_t at = 0;; ++at) {
        if ((fingerprint & kSifChosenMask) == 0 && offset + at >= free_from && !is_sif_run(data + at)) {
          out.values.push_back((fingerprint & (SifPolynomial::kModulus - 1)) >> 8);
          free_from = offset + at + kSifBytes;
        }
        if (at + kSifBytes == bytes.size()) break;
        fingerprint = SifPolynomial::add(fingerprint, data[at + kSifBytes]) - kSifLeaving[data[at]];
      }
    }));
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(sif_similarity);
  }
};

}  // namespace

std::unique_ptr<Detector> make_sif_detector() { return std::make_unique<SifDetector>(); }

}  // namespace kin
