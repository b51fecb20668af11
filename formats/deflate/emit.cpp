#include "formats/deflate/emit.h"

#include <array>

namespace kin::formats::deflate {
namespace {

struct Code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

struct Codes {
  std::array<Code, 256> literal;
  Code end;
  std::array<Code, kMostMatch + 1> length;  // with the extra bits
  Code irregular;
  std::array<Code, kDistanceSymbols> distance;
  bool complete = true;
};

// Symbols that occur and have no code cannot be written.
Codes make_codes(ByteView lit_len, ByteView distance, const Frequencies& used) {
  Codes out;
  std::array<std::uint16_t, 288> codes{};
  assign_codes(lit_len, codes);
  const auto code_of = [&](std::size_t symbol) -> Code {
    return symbol < lit_len.size() ? Code{codes[symbol], lit_len[symbol]} : Code{};
  };
  for (std::size_t i = 0; i < kLitLenSymbols; ++i)
    if (used.lit_len[i] != 0 && code_of(i).count == 0) out.complete = false;
  for (std::size_t i = 0; i < 256; ++i) out.literal[i] = code_of(i);
  out.end = code_of(kEndOfBlock);
  for (std::uint32_t i = kLeastMatch; i <= kMostMatch; ++i) {
    const std::uint32_t index = length_index(i);
    const Code code = code_of(257 + index);
    out.length[i] = {code.bits | (i - kLengthCodes[index].base) << code.count,
                     code.count + kLengthCodes[index].extra_bits};
  }
  const Code before_last = code_of(284);
  out.irregular = {before_last.bits | 31U << before_last.count, before_last.count + 5};
  assign_codes(distance, codes);
  for (std::size_t i = 0; i < kDistanceSymbols; ++i) {
    if (i < distance.size()) out.distance[i] = {codes[i], distance[i]};
    if (used.distance[i] != 0 && out.distance[i].count == 0) out.complete = false;
  }
  return out;
}

void write_header(BitWriter& out, const DynamicHeader& header) {
  out.put(header.lit_len.size() - 257, 5);
  out.put(header.distance.size() - 1, 5);
  out.put(header.item_lengths_written - 4U, 4);
  for (std::size_t i = 0; i < header.item_lengths_written; ++i)
    out.put(header.item_lengths[kItemOrder[i]], 3);
  std::array<std::uint16_t, 19> codes{};
  assign_codes(header.item_lengths, codes);
  for (const LengthItem item : header.items) {
    out.put(codes[item.symbol], header.item_lengths[item.symbol]);
    if (item.symbol == 16) out.put(item.repeat - 3U, 2);
    if (item.symbol == 17) out.put(item.repeat - 3U, 3);
    if (item.symbol == 18) out.put(item.repeat - 11U, 7);
  }
}

void write_tokens(BitWriter& out, const Codes& codes, const Block& block, const std::uint8_t* plain) {
  std::size_t irregular = 0;
  for (std::size_t i = 0; i < block.tokens.size(); ++i) {
    const Token token = block.tokens[i];
    if (token.is_literal()) {
      const Code code = codes.literal[*plain++];
      out.put(code.bits, code.count);
      continue;
    }
    Code code = codes.length[token.length];
    if (irregular < block.irregular.size() && block.irregular[irregular] == i) {
      code = codes.irregular;
      ++irregular;
    }
    const std::uint32_t symbol = distance_symbol(token.distance);
    const Code far = codes.distance[symbol];
    std::uint64_t bits = code.bits;
    std::uint32_t count = code.count;
    bits |= std::uint64_t{far.bits} << count;
    count += far.count;
    bits |= static_cast<std::uint64_t>(token.distance - kDistanceCodes[symbol].base) << count;
    count += kDistanceCodes[symbol].extra_bits;
    out.put(bits, count);
    plain += token.length;
  }
  out.put(codes.end.bits, codes.end.count);
}

}  // namespace

Result<void> write_block(BitWriter& out, const Block& block, const Frequencies& used,
                         const std::uint8_t* plain) {
  out.put(block.final ? 1 : 0, 1);
  out.put(static_cast<std::uint64_t>(block.type), 2);
  if (block.type == BlockType::stored) {
    const std::uint32_t padding = (8 - out.bits_in_last_byte()) % 8;
    out.put(block.padding & ((1U << padding) - 1), padding);
    out.put(block.plain_size, 16);
    out.put(block.plain_size ^ 0xffff, 16);
    out.bytes({plain, block.plain_size});
    return {};
  }
  if (block.type == BlockType::fixed) {
    write_tokens(out, make_codes(kFixedLitLen, kFixedDistance, used), block, plain);
    return {};
  }
  const Codes codes = make_codes(block.header.lit_len, block.header.distance, used);
  if (!codes.complete) return Error(ErrorCode::corrupt, "deflate: a symbol without a code");
  write_header(out, block.header);
  write_tokens(out, codes, block, plain);
  return {};
}

}  // namespace kin::formats::deflate
