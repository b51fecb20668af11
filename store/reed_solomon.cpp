#include "store/reed_solomon.h"

#include "lib/base/check.h"

#include <isa-l/erasure_code.h>

namespace kin::store {
namespace {

constexpr std::size_t kTableBytes = 32;  // of a coefficient

std::uint8_t coefficient(unsigned row, unsigned position) {
  return gf_inv(static_cast<std::uint8_t>((ReedSolomon::kMost - 1 - row) ^ position));
}

}  // namespace

ReedSolomon::ReedSolomon(unsigned positions, unsigned first_row, unsigned rows)
    : positions_(positions), rows_(rows), tables_(kTableBytes * positions * rows) {
  KIN_CHECK(positions + first_row + rows <= kMost);
  Bytes matrix;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned position = 0; position < positions; ++position)
      matrix.push_back(coefficient(first_row + row, position));
  if (rows > 0)
    ec_init_tables(static_cast<int>(positions), static_cast<int>(rows), matrix.data(), tables_.data());
}

void ReedSolomon::add(unsigned position, ByteView sector, std::span<std::uint8_t* const> parities) const {
  KIN_CHECK(position < positions_ && parities.size() == rows_);
  if (rows_ == 0) return;
  // It only reads what it takes as if to write: the tables, the sector, the list of pointers.
  ec_encode_data_update(static_cast<int>(sector.size()), static_cast<int>(positions_),
                        static_cast<int>(rows_), static_cast<int>(position),
                        const_cast<std::uint8_t*>(tables_.data()), const_cast<std::uint8_t*>(sector.data()),
                        const_cast<std::uint8_t**>(parities.data()));
}

std::vector<Bytes> ReedSolomon::solve(const std::vector<unsigned>& lost_positions,
                                      const std::vector<unsigned>& rows,
                                      const std::vector<std::uint8_t*>& parities, std::size_t sector_bytes) {
  const std::size_t count = lost_positions.size();
  KIN_CHECK(rows.size() == count && parities.size() == count);
  Bytes matrix, inverse(count * count), tables(kTableBytes * count * count);
  for (const unsigned row : rows)
    for (const unsigned position : lost_positions) matrix.push_back(coefficient(row, position));
  const int n = static_cast<int>(count);
  KIN_CHECK(gf_invert_matrix(matrix.data(), inverse.data(), n) == 0);
  ec_init_tables(n, n, inverse.data(), tables.data());
  std::vector<Bytes> out(count, Bytes(sector_bytes));
  std::vector<std::uint8_t*> from = parities, to;
  for (Bytes& sector : out) to.push_back(sector.data());
  ec_encode_data(static_cast<int>(sector_bytes), n, n, tables.data(), from.data(), to.data());
  return out;
}

}  // namespace kin::store
