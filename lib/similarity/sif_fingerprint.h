// What sif's two ways to choose fingerprints have in common: the fingerprint itself, the measure, and which
// files are text (Manber, "Finding Similar Files in a Large File System", 1994).
#pragma once

#include "lib/similarity/shared_values_index.h"

namespace kin {

inline constexpr std::size_t kSifBytes = 50;  // that a fingerprint is of

// t1 p^49 + t2 p^48 + ... + t50, modulo 2^60, with p a prime. (The paper's modulus is 2^30: of that, 22 bits
// are left when 8 have chosen, and many files collide.) Its low bits depend on the low bits of p and of the
// bytes alone; p is 3 modulo 8, so that its powers take the most values that they can there. Every byte
// counts for one more than it is: else all runs of zeros would have the fingerprint 0, which is always
// chosen.
struct SifPolynomial {
  static constexpr std::uint64_t kPrime = 1000003;
  static constexpr std::uint64_t kModulus = std::uint64_t{1} << 60;

  static std::uint64_t add(std::uint64_t fingerprint, std::uint8_t byte) {
    return fingerprint * kPrime + byte + 1;
  }
  static std::uint64_t of(const std::uint8_t* bytes);  // of kSifBytes; not yet modulo
};

// Fifty times the same byte says nothing about a file: sif's author met underlines.
bool is_sif_run(const std::uint8_t* bytes);

// 1: text. Files of the two kinds are not compared. By the first bytes of the file: no zero byte, and few
// other control characters.
std::uint32_t sif_kind(ByteView beginning);

// How much of the file that was asked for is in the other one: the fingerprints of the other that the first
// has as well, as a part of all that the first has. More than 1 if the other has them several times.
double sif_similarity(const SharedValues& shared);

}  // namespace kin
