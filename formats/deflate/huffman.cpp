#include "formats/deflate/huffman.h"

#include <algorithm>

namespace kin::formats::deflate {
namespace {

constexpr std::size_t kMostNodes = 2 * kLitLenSymbols + 1;
using Node = std::uint16_t;

// The heap of zlib's tree builder. Which of two equal nodes comes first is part of the result.
class TreeBuilder {
 public:
  TreeBuilder(std::span<const std::uint32_t> frequencies, std::uint32_t most_bits)
      : symbols_(frequencies.size()), most_bits_(most_bits) {
    std::copy(frequencies.begin(), frequencies.end(), frequency_.begin());
  }

  std::vector<std::uint8_t> run() {
    for (std::size_t n = 0; n < symbols_; ++n)
      if (frequency_[n] != 0) {
        heap_[++heap_size_] = static_cast<Node>(n);
        codes_ = n + 1;
      }
    while (heap_size_ < 2) {  // a code of one symbol would not be complete
      const std::size_t n = codes_ < 3 ? codes_++ : 0;
      heap_[++heap_size_] = static_cast<Node>(n);
      frequency_[n] = 1;
    }
    for (std::size_t k = heap_size_ / 2; k >= 1; --k) sift_down(k);
    join();
    measure();
    return {length_.begin(), length_.begin() + static_cast<std::ptrdiff_t>(codes_)};
  }

 private:
  bool before(Node n, Node m) const {
    return frequency_[n] < frequency_[m] || (frequency_[n] == frequency_[m] && depth_[n] <= depth_[m]);
  }

  void sift_down(std::size_t k) {
    const Node moved = heap_[k];
    for (std::size_t child = 2 * k; child <= heap_size_; child = 2 * k) {
      if (child < heap_size_ && before(heap_[child + 1], heap_[child])) ++child;
      if (before(moved, heap_[child])) break;
      heap_[k] = heap_[child];
      k = child;
    }
    heap_[k] = moved;
  }

  void join() {
    auto node = static_cast<Node>(symbols_);
    do {
      const Node least = heap_[1];
      heap_[1] = heap_[heap_size_--];
      sift_down(1);
      const Node second = heap_[1];
      order_[ordered_++] = least;
      order_[ordered_++] = second;
      frequency_[node] = frequency_[least] + frequency_[second];
      depth_[node] = static_cast<std::uint8_t>(std::max(depth_[least], depth_[second]) + 1);
      parent_[least] = parent_[second] = node;
      heap_[1] = node++;
      sift_down(1);
    } while (heap_size_ >= 2);
    order_[ordered_++] = heap_[1];
  }

  // Lengths from the root down; then too long ones are repaired by moving others down.
  void measure() {
    std::array<std::uint32_t, 17> count{};
    int overflow = 0;
    std::array<std::uint8_t, kMostNodes> level{};
    for (std::size_t i = ordered_ - 1; i-- > 0;) {
      const Node n = order_[i];
      std::uint32_t bits = level[parent_[n]] + 1U;
      if (bits > most_bits_) {
        bits = most_bits_;
        ++overflow;
      }
      level[n] = static_cast<std::uint8_t>(bits);
      if (n < symbols_) {
        length_[n] = static_cast<std::uint8_t>(bits);
        ++count[bits];
      }
    }
    if (overflow == 0) return;
    for (; overflow > 0; overflow -= 2) {
      std::uint32_t bits = most_bits_ - 1;
      while (count[bits] == 0) --bits;
      --count[bits];
      count[bits + 1] += 2;
      --count[most_bits_];
    }
    std::size_t i = 0;
    for (std::uint32_t bits = most_bits_; bits != 0; --bits)
      for (std::uint32_t n = count[bits]; n != 0;) {
        const Node symbol = order_[i++];
        if (symbol >= symbols_) continue;
        length_[symbol] = static_cast<std::uint8_t>(bits);
        --n;
      }
  }

  std::size_t symbols_;
  std::uint32_t most_bits_;
  std::size_t codes_ = 0;
  std::array<std::uint32_t, kMostNodes> frequency_{};
  std::array<std::uint8_t, kMostNodes> depth_{};
  // Those without a value are not looked at.
  std::array<Node, kMostNodes> parent_, heap_, order_;  // order_: as they left the heap
  std::size_t heap_size_ = 0, ordered_ = 0;
  std::array<std::uint8_t, kLitLenSymbols> length_{};
};

std::uint64_t item_extra_bits(std::size_t symbol) {
  return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0;
}

}  // namespace

Frequencies count_symbols(const Block& block, const std::uint8_t* plain) {
  Frequencies out;
  std::array<std::uint32_t, kMostMatch + 1> lengths{};
  for (const Token token : block.tokens) {
    if (token.is_literal()) {
      ++out.lit_len[*plain++];
    } else {
      ++lengths[token.length];
      ++out.distance[distance_symbol(token.distance)];
      plain += token.length;
    }
  }
  for (std::uint32_t i = kLeastMatch; i <= kMostMatch; ++i) out.lit_len[257 + length_index(i)] += lengths[i];
  for (std::size_t i = 0; i < block.irregular.size(); ++i) {
    --out.lit_len[285];
    ++out.lit_len[284];
  }
  out.lit_len[kEndOfBlock] = 1;
  return out;
}

std::vector<std::uint8_t> code_lengths(std::span<const std::uint32_t> frequencies, std::uint32_t most_bits) {
  return TreeBuilder(frequencies, most_bits).run();
}

void append_length_items(ByteView lengths, std::vector<LengthItem>& items) {
  int previous = -1;
  for (std::size_t at = 0; at < lengths.size();) {
    const std::uint8_t length = lengths[at];
    // zlib counts up to 138 zeros, up to 6 more of what it wrote last, or up to 7 of something new.
    const std::size_t most = length == 0 ? 138 : length == previous ? 6 : 7;
    const std::size_t least = length == 0 || length == previous ? 3 : 4;
    std::size_t count = 1;
    while (count < most && at + count < lengths.size() && lengths[at + count] == length) ++count;
    at += count;
    if (count < least) {
      items.insert(items.end(), count, {length, 1});
    } else if (length != 0) {
      if (length != previous) {
        items.push_back({length, 1});
        --count;
      }
      items.push_back({16, static_cast<std::uint8_t>(count)});
    } else {
      items.push_back({static_cast<std::uint8_t>(count <= 10 ? 17 : 18), static_cast<std::uint8_t>(count)});
    }
    previous = length;
  }
}

std::array<std::uint8_t, 19> item_code_lengths(const std::vector<LengthItem>& items) {
  std::array<std::uint32_t, 19> frequencies{};
  for (const LengthItem item : items) ++frequencies[item.symbol];
  const auto lengths = code_lengths(frequencies, 7);
  std::array<std::uint8_t, 19> out{};
  std::copy(lengths.begin(), lengths.end(), out.begin());
  return out;
}

std::uint8_t item_lengths_needed(const std::array<std::uint8_t, 19>& lengths) {
  std::size_t count = lengths.size();
  while (count > 4 && lengths[kItemOrder[count - 1]] == 0) --count;
  return static_cast<std::uint8_t>(count);
}

DynamicHeader zlib_header(const Frequencies& frequencies) {
  DynamicHeader out;
  out.lit_len = code_lengths(frequencies.lit_len, 15);
  out.distance = code_lengths(frequencies.distance, 15);
  append_length_items(out.lit_len, out.items);
  append_length_items(out.distance, out.items);
  out.item_lengths = item_code_lengths(out.items);
  out.item_lengths_written = item_lengths_needed(out.item_lengths);
  return out;
}

DynamicHeader flat_header() {
  Frequencies flat;
  flat.lit_len.fill(1);
  flat.distance.fill(1);
  return zlib_header(flat);
}

bool zlib_prefers_fixed(const Frequencies& frequencies, const DynamicHeader& header) {
  std::uint64_t fixed_bits = 0;
  std::uint64_t dynamic_bits = 14 + 3 * std::uint64_t{header.item_lengths_written};
  for (const LengthItem item : header.items)
    dynamic_bits += header.item_lengths[item.symbol] + item_extra_bits(item.symbol);
  for (std::size_t i = 0; i < kLitLenSymbols; ++i) {
    const std::uint64_t count = frequencies.lit_len[i];
    if (count == 0) continue;
    const std::uint64_t extra = i > kEndOfBlock ? kLengthCodes[i - 257].extra_bits : 0;
    fixed_bits += count * (fixed_length(i) + extra);
    dynamic_bits += count * (header.lit_len[i] + extra);
  }
  for (std::size_t i = 0; i < kDistanceSymbols; ++i) {
    const std::uint64_t count = frequencies.distance[i];
    if (count == 0) continue;
    fixed_bits += count * (5 + std::uint64_t{kDistanceCodes[i].extra_bits});
    dynamic_bits += count * (header.distance[i] + std::uint64_t{kDistanceCodes[i].extra_bits});
  }
  return (fixed_bits + 10) / 8 <= (dynamic_bits + 10) / 8;
}

void assign_codes(ByteView lengths, std::span<std::uint16_t> codes) {
  std::array<std::uint32_t, 16> count{}, next{};
  for (const std::uint8_t length : lengths) ++count[length];
  count[0] = 0;
  for (std::size_t bits = 1; bits < next.size(); ++bits) next[bits] = (next[bits - 1] + count[bits - 1]) << 1;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint32_t length = lengths[i];
    if (length == 0) continue;
    const std::uint32_t code = next[length]++;
    std::uint32_t out = 0;
    for (std::uint32_t bit = 0; bit < length; ++bit) out |= ((code >> bit) & 1) << (length - 1 - bit);
    codes[i] = static_cast<std::uint16_t>(out);
  }
}

}  // namespace kin::formats::deflate
