// ReedSolomon: parity over GF(2^8), by ISA-L. A stripe has up to `positions` sectors of equal length, and a
// parity sector for each row: parity[r] = sum of coefficient(r, p) * sector[p], with coefficient(r, p) =
// 1 / ((255 - r) xor p), in the field of x^8+x^4+x^3+x^2+1. Those are a Cauchy matrix: any square part of it
// can be inverted, so that any e lost sectors come back from any e rows.
//
// Immutable after construction; thread-safe.
#pragma once

#include "lib/base/bytes.h"

#include <optional>
#include <span>
#include <vector>

namespace kin::store {

class ReedSolomon {
 public:
  static constexpr unsigned kMost = 256;  // positions and rows together

  // Of the matrix, the rows from `first_row` on; positions + first_row + rows <= kMost.
  ReedSolomon(unsigned positions, unsigned first_row, unsigned rows);

  unsigned rows() const { return rows_; }

  // Adds a sector to each of its stripe's parities, `rows` of them, all of the same length, at least 64
  // bytes. Added again, it is taken out.
  void add(unsigned position, ByteView sector, std::span<std::uint8_t* const> parities) const;

  // A stripe's lost sectors, from as many parities of which all other sectors were taken out.
  static std::vector<Bytes> solve(const std::vector<unsigned>& lost_positions,
                                  const std::vector<unsigned>& rows,
                                  const std::vector<std::uint8_t*>& parities, std::size_t sector_bytes);

 private:
  unsigned positions_, rows_;
  Bytes tables_;  // ISA-L's, of the coefficients
};

}  // namespace kin::store
