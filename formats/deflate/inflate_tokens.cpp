#include "formats/deflate/inflate_tokens.h"

#include "formats/deflate/huffman.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kin::formats::deflate {
namespace {

constexpr std::uint32_t kLitLenBits = 11;
constexpr std::uint32_t kDistanceBits = 9;
constexpr std::size_t kSlack = kMostMatch + 16;  // a match is copied in steps of 16, beyond its end

Error corrupt(const char* what) { return {ErrorCode::corrupt, std::string("deflate: ") + what}; }
Error too_large() { return {ErrorCode::unsupported, "deflate: larger than the limit"}; }

// `from` is `distance` before `to`, and what is there may be part of what is written.
void copy_match(std::uint8_t* to, std::uint32_t distance, std::uint32_t length) {
  const std::uint8_t* from = to - distance;
  if (distance >= 16) {
    for (std::uint32_t i = 0; i < length; i += 16) std::memcpy(to + i, from + i, 16);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    for (std::uint32_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

}  // namespace

Result<Block> BlockReader::next(Bytes& plain, std::size_t most_plain) {
  Block block;
  block.start_bit = static_cast<std::uint8_t>(bits_.position() % 8);
  bits_.refill();
  block.final = bits_.take(1) != 0;
  const std::uint32_t type = bits_.take(2);
  if (type == 3) return corrupt("no such block type");
  block.type = static_cast<BlockType>(type);
  if (block.type == BlockType::stored) {
    KIN_TRY(read_stored(block, plain, most_plain));
    return block;
  }
  if (block.type == BlockType::fixed) {
    static constexpr std::array<std::uint8_t, 32> kDistances = {
        5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    lit_len_.build(kFixedLitLen, kLitLenBits);
    distance_.build(kDistances, kDistanceBits);
  } else {
    KIN_TRY(read_header(block.header));
  }
  KIN_TRY(read_tokens(block, plain, most_plain));
  return block;
}

Result<void> BlockReader::read_stored(Block& block, Bytes& plain, std::size_t most_plain) {
  block.padding = static_cast<std::uint8_t>(bits_.take((8 - bits_.position() % 8) % 8));
  bits_.refill();
  const std::uint32_t size = bits_.take(16);
  if (bits_.take(16) != (size ^ 0xffff)) return corrupt("the length of a stored block is not confirmed");
  if (bits_.overrun()) return corrupt("cut off");
  if (size > most_plain - std::min(most_plain, plain.size())) return too_large();
  const std::size_t before = plain.size();
  plain.resize(before + size);
  if (bits_.copy(plain.data() + before, size) != size) return corrupt("cut off");
  block.plain_size = size;
  return {};
}

Result<void> BlockReader::read_header(DynamicHeader& header) {
  bits_.refill();
  const std::size_t lit_lens = bits_.take(5) + 257;
  const std::size_t distances = bits_.take(5) + 1;
  header.item_lengths_written = static_cast<std::uint8_t>(bits_.take(4) + 4);
  if (lit_lens > kLitLenSymbols || distances > kDistanceSymbols) return corrupt("too many symbols");
  for (std::size_t i = 0; i < header.item_lengths_written; ++i) {
    bits_.refill();
    header.item_lengths[kItemOrder[i]] = static_cast<std::uint8_t>(bits_.take(3));
  }
  DecodeTable item_table;
  if (!item_table.build(header.item_lengths, 7)) return corrupt("no Huffman code");
  std::array<std::uint8_t, kLitLenSymbols + kDistanceSymbols> lengths{};
  std::size_t at = 0;
  while (at < lit_lens + distances) {
    bits_.refill();
    const DecodeTable::Entry entry = item_table.find(bits_.peek());
    if (entry.length == 0 || bits_.overrun()) return corrupt("no such code");
    bits_.drop(entry.length);
    LengthItem item{static_cast<std::uint8_t>(entry.symbol), 1};
    std::uint8_t value = item.symbol;
    if (item.symbol >= 16) {
      if (item.symbol == 16 && at == 0) return corrupt("nothing to repeat");
      value = item.symbol == 16 ? lengths[at - 1] : std::uint8_t{0};
      item.repeat = static_cast<std::uint8_t>(item.symbol == 16   ? 3 + bits_.take(2)
                                              : item.symbol == 17 ? 3 + bits_.take(3)
                                                                  : 11 + bits_.take(7));
    }
    if (item.repeat > lit_lens + distances - at) return corrupt("too many code lengths");
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(at), item.repeat, value);
    at += item.repeat;
    header.items.push_back(item);
  }
  const ByteView all(lengths);
  header.lit_len.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(lit_lens));
  header.distance.assign(all.begin() + static_cast<std::ptrdiff_t>(lit_lens),
                         all.begin() + static_cast<std::ptrdiff_t>(lit_lens + distances));
  if (header.lit_len[kEndOfBlock] == 0) return corrupt("a block without end");
  if (!lit_len_.build(header.lit_len, kLitLenBits) || !distance_.build(header.distance, kDistanceBits))
    return corrupt("no Huffman code");
  return {};
}

Result<void> BlockReader::read_tokens(Block& block, Bytes& plain, std::size_t most_plain) {
  const std::size_t start = plain.size();
  const std::size_t limit = std::max(start, std::min(most_plain, start + most_block_bytes_));
  const std::size_t most_tokens = most_block_bytes_ / sizeof(Token);
  block.tokens.reserve(16384);  // zlib's buffer
  std::size_t at = start;
  std::uint8_t* bytes = plain.data();
  const auto finish = [&] {
    plain.resize(at);
    block.plain_size = static_cast<std::uint32_t>(at - start);
  };
  for (;;) {
    if (at + kSlack > plain.size()) {
      if (bits_.overrun()) return corrupt("cut off");
      if (block.tokens.size() > most_tokens) return too_large();
      plain.resize(at + kSlack + (std::size_t{64} << 10));
      bytes = plain.data();
    }
    bits_.refill();
    DecodeTable::Entry entry = lit_len_.find(bits_.peek());
    bits_.drop(entry.length);
    if (entry.symbol < 256 && entry.length != 0) {
      bytes[at++] = static_cast<std::uint8_t>(entry.symbol);
      block.tokens.push_back({});
      continue;
    }
    // Each block has an end, so what was read beyond the stream's end is seen here or above.
    if (entry.symbol == kEndOfBlock) break;
    if (entry.length == 0 || entry.symbol > 285) return corrupt("no such code");
    const std::uint32_t index = entry.symbol - 257U;
    const std::uint32_t length = kLengthCodes[index].base + bits_.take(kLengthCodes[index].extra_bits);
    entry = distance_.find(bits_.peek());
    bits_.drop(entry.length);
    if (entry.length == 0 || entry.symbol >= kDistanceSymbols) return corrupt("no such code");
    const ValueCode code = kDistanceCodes[entry.symbol];
    const std::uint32_t distance = code.base + bits_.take(code.extra_bits);
    if (distance > at) return corrupt("a match from before the start");
    if (at > limit) return too_large();
    if (length == kMostMatch && index == 27)
      block.irregular.push_back(static_cast<std::uint32_t>(block.tokens.size()));
    copy_match(bytes + at, distance, length);
    at += length;
    block.tokens.push_back({static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(distance)});
  }
  if (bits_.overrun()) return corrupt("cut off");
  if (at > limit || block.tokens.size() > most_tokens) return too_large();
  finish();
  return {};
}

}  // namespace kin::formats::deflate
