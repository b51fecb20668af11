#include "formats/xz/decoder.h"

#include <algorithm>

namespace kin::formats::xz {
namespace {

Error no_chunk() { return Error(ErrorCode::corrupt, "xz: a chunk that cannot be decoded"); }

constexpr std::size_t kReserve = 4U << 20;

}  // namespace

// Bits of one chunk; zeros behind its end, and then overrun() is true.
class Decoder::Bits {
 public:
  explicit Bits(ByteView bytes) : bytes_(bytes) {
    for (int i = 0; i < 5; ++i) code_ = code_ << 8 | next();
  }

  std::uint32_t bit(Probability& zero) {
    make_room();
    const std::uint32_t bound = (range_ >> kProbabilityBits) * zero;
    if (code_ < bound) {
      range_ = bound;
      zero = static_cast<Probability>(zero + ((kProbabilityTotal - zero) >> kAdaptShift));
      return 0;
    }
    range_ -= bound;
    code_ -= bound;
    zero = static_cast<Probability>(zero - (zero >> kAdaptShift));
    return 1;
  }
  std::uint32_t tree(Probability* zeros, std::uint32_t bits) {
    std::uint32_t node = 1;
    for (std::uint32_t i = 0; i < bits; ++i) node = 2 * node + bit(zeros[node]);
    return node - (1U << bits);
  }
  std::uint32_t reverse_tree(Probability* zeros, std::uint32_t bits) {
    std::uint32_t node = 1, value = 0;
    for (std::uint32_t i = 0; i < bits; ++i) {
      const std::uint32_t one = bit(zeros[node]);
      node = 2 * node + one;
      value |= one << i;
    }
    return value;
  }
  std::uint32_t direct(std::uint32_t bits) {
    std::uint32_t value = 0;
    for (; bits > 0; --bits) {
      make_room();
      range_ >>= 1;
      const std::uint32_t one = code_ >= range_ ? 1 : 0;
      if (one != 0) code_ -= range_;
      value = 2 * value + one;
    }
    return value;
  }
  bool overrun() const { return overrun_; }

 private:
  void make_room() {
    if (range_ >= 1U << 24) return;
    range_ <<= 8;
    code_ = code_ << 8 | next();
  }
  std::uint8_t next() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    overrun_ = true;
    return 0;
  }

  const ByteView bytes_;
  std::size_t at_ = 0;
  std::uint32_t range_ = UINT32_MAX, code_ = 0;
  bool overrun_ = false;
};

Result<ByteView> Decoder::decode(const ChunkHeader& header, ByteView encoded) {
  if (needs_dictionary_reset_ && !header.resets_dictionary) return no_chunk();
  needs_dictionary_reset_ = false;
  if (header.resets_dictionary) known_ = position_ = 0;
  make_room(header.plain_bytes);
  const std::size_t before = end_;
  if (header.stored) {
    std::copy(encoded.begin(), encoded.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(end_));
    end_ += encoded.size();
    known_ += encoded.size();
    position_ += encoded.size();
    return ByteView(bytes_).subspan(before, header.plain_bytes);
  }
  if (needs_properties_ && !header.properties) return no_chunk();
  if (header.properties) {
    const auto properties = parse_properties(*header.properties);
    if (!properties) return no_chunk();
    literal_context_ = LiteralContext(properties->literal_context_bits, properties->literal_position_bits);
    position_mask_ = (1U << properties->position_bits) - 1;
    needs_properties_ = false;
  }
  if (header.resets_state) {
    model_.reset();
    state_ = 0;
    reps_ = {};
  }
  if (!decode_lzma(encoded, header.plain_bytes)) return no_chunk();
  return ByteView(bytes_).subspan(before, header.plain_bytes);
}

void Decoder::make_room(std::size_t plain_bytes) {
  const std::size_t most = std::size_t{dictionary_bytes_} + dictionary_bytes_ / 2 + kReserve;
  if (end_ + plain_bytes > most) {
    const std::size_t kept = std::min<std::size_t>({known_, end_, dictionary_bytes_});
    std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(end_ - kept),
              bytes_.begin() + static_cast<std::ptrdiff_t>(end_), bytes_.begin());
    end_ = kept;
  }
  if (bytes_.size() < end_ + plain_bytes)
    bytes_.resize(std::min(std::max(2 * bytes_.size(), end_ + plain_bytes), most));
}

bool Decoder::decode_lzma(ByteView encoded, std::size_t plain_bytes) {
  Bits bits(encoded);
  const std::size_t end = end_ + plain_bytes;
  while (end_ < end)
    if (!decode_symbol(bits, end) || bits.overrun()) return false;
  return true;
}

bool Decoder::decode_symbol(Bits& bits, std::size_t end) {
  const auto position_state = static_cast<std::uint32_t>(position_) & position_mask_;
  if (bits.bit(model_.is_match[state_][position_state]) == 0) {
    if (!after_literal(state_) && reps_[0] >= known_) return false;
    decode_literal(bits);
    return true;
  }
  if (bits.bit(model_.is_rep[state_]) == 0) {
    reps_ = {0, reps_[0], reps_[1], reps_[2]};
    state_ = state_after_match(state_);
    const std::uint32_t length = decode_length(bits, model_.match_length, position_state);
    reps_[0] = decode_distance(bits, length);
    return copy(length, end);
  }
  if (bits.bit(model_.is_other_rep[state_]) == 0) {
    if (bits.bit(model_.is_long_rep0[state_][position_state]) == 0) {
      state_ = state_after_short_rep(state_);
      return copy(1, end);
    }
  } else {
    std::uint32_t rep = 1;
    if (bits.bit(model_.is_rep2_or_3[state_]) != 0) rep = 2 + bits.bit(model_.is_rep3[state_]);
    std::rotate(reps_.begin(), reps_.begin() + rep, reps_.begin() + rep + 1);
  }
  const std::uint32_t length = decode_length(bits, model_.rep_length, position_state);
  state_ = state_after_rep(state_);
  return copy(length, end);
}

void Decoder::decode_literal(Bits& bits) {
  const std::uint8_t before = known_ > 0 ? bytes_[end_ - 1] : 0;
  Probability* const zeros =
      model_.literal[literal_context_.of(static_cast<std::uint32_t>(position_), before)].data();
  std::uint32_t symbol = 1;
  if (!after_literal(state_)) {
    std::uint32_t match = bytes_[end_ - reps_[0] - 1];
    std::uint32_t offset = 0x100;
    while (symbol < 0x100 && offset != 0) {
      match <<= 1;
      const std::uint32_t match_bit = match & offset;
      const std::uint32_t one = bits.bit(zeros[offset + match_bit + symbol]);
      symbol = 2 * symbol + one;
      if ((match_bit != 0) != (one != 0)) offset = 0;
    }
  }
  while (symbol < 0x100) symbol = 2 * symbol + bits.bit(zeros[symbol]);
  bytes_[end_++] = static_cast<std::uint8_t>(symbol);
  ++known_;
  ++position_;
  state_ = state_after_literal(state_);
}

std::uint32_t Decoder::decode_length(Bits& bits, LengthModel& lengths, std::uint32_t position_state) {
  if (bits.bit(lengths.choice[0]) == 0)
    return kShortestMatch + bits.tree(lengths.low[position_state].data(), 3);
  if (bits.bit(lengths.choice[1]) == 0)
    return kShortestMatch + kLowLengths + bits.tree(lengths.middle[position_state].data(), 3);
  return kShortestMatch + kLowLengths + kMiddleLengths + bits.tree(lengths.high.data(), 8);
}

std::uint32_t Decoder::decode_distance(Bits& bits, std::uint32_t length) {
  const std::uint32_t slot = bits.tree(model_.slot[length_state(length)].data(), kSlotBits);
  if (slot < kFirstModelledSlot) return slot;
  const std::uint32_t low_bits = slot_low_bits(slot);
  if (slot < kFirstDirectSlot)
    return slot_base(slot) + bits.reverse_tree(model_.low_bits.data() + Model::low_bits_of(slot), low_bits);
  const std::uint32_t high = bits.direct(low_bits - kAlignBits) << kAlignBits;
  return slot_base(slot) + high + bits.reverse_tree(model_.align.data(), kAlignBits);
}

bool Decoder::copy(std::uint32_t length, std::size_t end) {
  if (reps_[0] >= known_ || reps_[0] >= dictionary_bytes_ || length > end - end_) return false;
  const std::uint8_t* from = bytes_.data() + end_ - reps_[0] - 1;
  std::uint8_t* to = bytes_.data() + end_;
  for (std::uint32_t i = 0; i < length; ++i) to[i] = from[i];  // which may overlap
  end_ += length;
  known_ += length;
  position_ += length;
  return true;
}

}  // namespace kin::formats::xz
