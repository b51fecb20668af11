#include "formats/bzip2/code_lengths.h"

#include <algorithm>

namespace kin::formats::bzip2 {
namespace {

constexpr std::uint8_t kMostBits = 17;

// A weight is a frequency, and in the low byte the depth of the tree below: of two equal frequencies, the
// shallower tree is the lighter.
constexpr std::uint32_t kDepthBits = 8, kDepthMask = 0xff;

constexpr std::uint32_t joined(std::uint32_t a, std::uint32_t b) {
  return ((a & ~kDepthMask) + (b & ~kDepthMask)) | (1 + std::max(a & kDepthMask, b & kDepthMask));
}

constexpr std::size_t kMostNodes = 2 * kMostSymbols;
using Weights = std::array<std::uint32_t, kMostNodes>;

// Nodes by weight, the lightest first. Not std::push_heap, which may order equal ones as it likes.
class NodeHeap {
 public:
  explicit NodeHeap(const Weights& weights) : weights_(weights) {}

  std::size_t size() const { return size_; }

  void push(std::size_t node) {
    std::size_t at = ++size_;
    for (; at > 1 && weights_[node] < weights_[nodes_[at / 2]]; at /= 2) nodes_[at] = nodes_[at / 2];
    nodes_[at] = node;
  }

  std::size_t pop() {
    const std::size_t top = nodes_[1], moved = nodes_[size_--];
    std::size_t at = 1;
    for (std::size_t child = 2; child <= size_; child = 2 * at) {
      if (child < size_ && weights_[nodes_[child + 1]] < weights_[nodes_[child]]) ++child;
      if (weights_[moved] < weights_[nodes_[child]]) break;
      nodes_[at] = nodes_[child];
      at = child;
    }
    nodes_[at] = moved;
    return top;
  }

 private:
  const Weights& weights_;
  std::array<std::size_t, kMostSymbols + 2> nodes_{};  // from 1
  std::size_t size_ = 0;
};

// The depths of the first `leaves` nodes in the tree that their weights give.
CodeLengths depths_in_tree(Weights& weights, std::size_t leaves) {
  std::array<std::size_t, kMostNodes> parents{};
  NodeHeap heap(weights);
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) heap.push(leaf);
  std::size_t nodes = leaves;
  while (heap.size() > 1) {
    const std::size_t first = heap.pop(), second = heap.pop();
    parents[first] = parents[second] = nodes;
    weights[nodes] = joined(weights[first], weights[second]);
    heap.push(nodes++);
  }
  std::array<std::uint8_t, kMostNodes> depths{};
  for (std::size_t node = nodes - 1; node-- > 0;)
    depths[node] = static_cast<std::uint8_t>(std::min(depths[parents[node]] + 1, 255));
  CodeLengths out{};
  std::copy_n(depths.begin(), leaves, out.begin());
  return out;
}

}  // namespace

CodeLengths make_code_lengths(std::span<const std::uint32_t> frequencies) {
  Weights weights{};
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    weights[i] = std::max(frequencies[i], std::uint32_t{1}) << kDepthBits;
  for (;;) {
    const CodeLengths out = depths_in_tree(weights, frequencies.size());
    if (*std::max_element(out.begin(), out.end()) <= kMostBits) return out;
    for (std::size_t i = 0; i < frequencies.size(); ++i)
      weights[i] = (1 + (weights[i] >> kDepthBits) / 2) << kDepthBits;
  }
}

std::array<std::uint32_t, kMostSymbols> assign_codes(const CodeLengths& lengths, std::size_t alphabet) {
  std::array<std::uint32_t, kMostSymbols> out{};
  std::uint32_t code = 0;
  for (std::uint8_t bits = 1; bits <= kMostCodeBits; ++bits, code <<= 1)
    for (std::size_t symbol = 0; symbol < alphabet; ++symbol)
      if (lengths[symbol] == bits) out[symbol] = code++;
  return out;
}

}  // namespace kin::formats::bzip2
