#include "formats/bzip2/block_bits.h"

#include "formats/bzip2/code_lengths.h"
#include "formats/bzip2/decode_table.h"
#include "formats/bzip2/length_bits.h"

#include <algorithm>
#include <numeric>

namespace kin::formats::bzip2 {
namespace {

Error no_block(const char* why) { return Error(ErrorCode::corrupt, std::string("bzip2: ") + why); }

// Each selector as its place in a list, to whose front it moves.
class SelectorList {
 public:
  SelectorList() { std::iota(list_.begin(), list_.end(), std::uint8_t{0}); }

  std::uint32_t place_of(std::uint8_t table) {
    const auto at = std::find(list_.begin(), list_.end(), table);
    const auto place = static_cast<std::uint32_t>(at - list_.begin());
    to_front(place);
    return place;
  }
  std::uint8_t at(std::uint32_t place) {
    to_front(place);
    return list_[0];
  }

 private:
  void to_front(std::uint32_t place) {
    std::rotate(list_.begin(), list_.begin() + place, list_.begin() + place + 1);
  }

  std::array<std::uint8_t, kMostTables> list_{};
};

void write_used(BitWriter& out, const std::array<bool, 256>& used) {
  std::uint32_t ranges = 0;
  std::array<std::uint32_t, 16> bits{};
  for (std::size_t byte = 0; byte < used.size(); ++byte)
    if (used[byte]) bits[byte / 16] |= 0x8000U >> byte % 16;
  for (std::size_t range = 0; range < bits.size(); ++range)
    if (bits[range] != 0) ranges |= 0x8000U >> range;
  out.put(ranges, 16);
  for (const std::uint32_t range : bits)
    if (range != 0) out.put(range, 16);
}

void read_used(BitReader& in, std::array<bool, 256>& used) {
  const std::uint32_t ranges = in.take(16);
  for (std::size_t range = 0; range < 16; ++range) {
    if ((ranges & 0x8000U >> range) == 0) continue;
    const std::uint32_t bits = in.take(16);
    for (std::size_t i = 0; i < 16; ++i) used[16 * range + i] = (bits & 0x8000U >> i) != 0;
  }
}

Result<void> read_tables(BitReader& in, std::size_t alphabet, Tables& tables) {
  tables.count = in.take(3);
  const std::size_t selectors = in.take(15);
  if (tables.count < 2 || tables.count > kMostTables || selectors == 0) return no_block("no tables");
  SelectorList list;
  for (std::size_t i = 0; i < selectors; ++i) {
    std::uint32_t place = 0;
    while (in.take(1) != 0)
      if (++place == tables.count) return no_block("a table that is not there");
    if (in.overrun()) return no_block("cut off");
    tables.selectors.push_back(list.at(place));
  }
  for (std::size_t table = 0; table < tables.count; ++table)
    if (!read_lengths(in, tables.lengths[table], alphabet)) return no_block("no code");
  return {};
}

Result<void> read_values(BitReader& in, const Tables& tables, Symbols& symbols) {
  std::vector<DecodeTable> decode;
  for (std::size_t table = 0; table < tables.count; ++table)
    decode.emplace_back(tables.lengths[table], symbols.alphabet);
  const std::size_t end = symbols.alphabet - 1;
  for (const std::uint8_t selector : tables.selectors) {
    const DecodeTable& table = decode[selector];
    for (std::size_t i = 0; i < kGroupSymbols; ++i) {
      const DecodeTable::Entry entry = table.find(in.peek());
      if (entry.bits == 0) return no_block("no such code");
      in.drop(entry.bits);
      symbols.values.push_back(entry.symbol);
      if (entry.symbol != end) continue;
      return in.overrun() ? Result<void>(no_block("cut off")) : Result<void>();
    }
    // Each symbol but one stands for a byte at least.
    if (in.overrun() || symbols.values.size() > kMostBlockBytes) return no_block("cut off, or too long");
  }
  return no_block("no end");
}

}  // namespace

void write_block(BitWriter& out, const BlockContent& block) {
  const Symbols& symbols = block.symbols;
  const Tables& tables = block.tables;
  out.put(block.crc, 32);
  out.put(0, 1);
  out.put(block.origin, 24);
  write_used(out, symbols.used);
  out.put(static_cast<std::uint32_t>(tables.count), 3);
  out.put(static_cast<std::uint32_t>(tables.selectors.size()), 15);
  SelectorList list;
  for (const std::uint8_t selector : tables.selectors) {
    const std::uint32_t place = list.place_of(selector);
    out.put((2U << place) - 2, place + 1);  // so many ones, and a zero
  }
  std::array<std::array<std::uint32_t, kMostSymbols>, kMostTables> codes;
  for (std::size_t table = 0; table < tables.count; ++table) {
    write_lengths(out, tables.lengths[table], symbols.alphabet);
    codes[table] = assign_codes(tables.lengths[table], symbols.alphabet);
  }
  for (std::size_t at = 0; at < symbols.values.size(); ++at) {
    const std::uint8_t table = tables.selectors[at / kGroupSymbols];
    const std::uint16_t value = symbols.values[at];
    out.put(codes[table][value], tables.lengths[table][value]);
  }
}

Result<BlockContent> read_block(BitReader& in) {
  BlockContent out;
  out.crc = in.take(32);
  if (in.take(1) != 0) return Error(ErrorCode::unsupported, "bzip2: a scrambled block");
  out.origin = in.take(24);
  read_used(in, out.symbols.used);
  const auto used = std::count(out.symbols.used.begin(), out.symbols.used.end(), true);
  if (used == 0) return no_block("an empty block");
  out.symbols.alphabet = static_cast<std::size_t>(used) + 2;
  KIN_TRY(read_tables(in, out.symbols.alphabet, out.tables));
  KIN_TRY(read_values(in, out.tables, out.symbols));
  return out;
}

}  // namespace kin::formats::bzip2
