// HeaderCodec: a dynamic block's header, coded as its difference from what zlib would have written.
#pragma once

#include "formats/deflate/block.h"
#include "formats/deflate/huffman.h"
#include "formats/deflate/range_coder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace kin::formats::deflate {

class HeaderCodec {
 public:
  // False if what was decoded is no header.
  template <class Coder>
  bool code(Coder& coder, DynamicHeader& header, const DynamicHeader& predicted) {
    if (coder.bit(same_, header == predicted)) {
      header = predicted;
      return true;
    }
    return code_lengths_of(coder, header.lit_len, predicted.lit_len, lit_len_, 257, kLitLenSymbols) &&
           code_lengths_of(coder, header.distance, predicted.distance, distance_, 1, kDistanceSymbols) &&
           code_items(coder, header) && code_item_lengths(coder, header);
  }

 private:
  struct LengthModels {
    NumberModel count;
    std::array<std::array<NumberModel, 3>, 16> length;
  };

  template <class Coder>
  static bool code_lengths_of(Coder& coder, std::vector<std::uint8_t>& lengths,
                              const std::vector<std::uint8_t>& predicted, LengthModels& models,
                              std::size_t least, std::size_t most) {
    const std::int64_t count =
        static_cast<std::int64_t>(predicted.size()) +
        models.count.code_signed(
            coder, static_cast<std::int32_t>(lengths.size()) - static_cast<std::int32_t>(predicted.size()));
    if (count < static_cast<std::int64_t>(least) || count > static_cast<std::int64_t>(most)) return false;
    lengths.resize(static_cast<std::size_t>(count));
    std::size_t last_error = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const int expected = i < predicted.size() ? predicted[i] : 0;
      const int difference = models.length[static_cast<std::size_t>(expected)][last_error].code_signed(
          coder, lengths[i] - expected);
      const int length = expected + difference;
      if (length < 0 || length > 15) return false;
      lengths[i] = static_cast<std::uint8_t>(length);
      if (expected != 0) last_error = difference == 0 ? 0 : difference > 0 ? 1 : 2;
    }
    return true;
  }

  template <class Coder>
  bool code_items(Coder& coder, DynamicHeader& header) {
    std::vector<LengthItem> predicted;
    append_length_items(header.lit_len, predicted);
    append_length_items(header.distance, predicted);
    if (coder.bit(same_items_, header.items == predicted)) {
      header.items = std::move(predicted);
      return true;
    }
    std::vector<std::uint8_t> all = header.lit_len;
    all.insert(all.end(), header.distance.begin(), header.distance.end());
    std::size_t item = 0;
    for (std::size_t at = 0; at < all.size(); ++item) {
      LengthItem wanted = item < header.items.size() ? header.items[item] : LengthItem{};
      std::size_t run = 1;
      while (run < 138 && at + run < all.size() && all[at + run] == all[at]) ++run;
      const bool again = at > 0 && all[at - 1] == all[at];
      const bool zero = all[at] == 0;
      auto& models = items_[zero ? 1 : 0][again ? 1 : 0];
      LengthItem got{all[at], 1};
      if (run >= 3 && (zero || again) &&
          coder.bit(models.repeats[std::min<std::size_t>(run, 15)], wanted.symbol >= 16)) {
        got.symbol = 16;
        if (zero && !(again && coder.bit(models.is_16, wanted.symbol == 16)))
          got.symbol = run >= 11 && coder.bit(models.is_18, wanted.symbol == 18) ? 18 : 17;
        const std::size_t least = got.symbol == 18 ? 11 : 3;
        const std::size_t most = std::min<std::size_t>(run, got.symbol == 16   ? 6
                                                            : got.symbol == 17 ? 10
                                                                               : 138);
        const std::size_t short_of_most = models.repeat.code(
            coder, static_cast<std::uint32_t>(most - std::min<std::size_t>(most, wanted.repeat)));
        if (short_of_most > most - least) return false;
        got.repeat = static_cast<std::uint8_t>(most - short_of_most);
      }
      if constexpr (Coder::kDecodes) header.items.push_back(got);
      at += got.repeat;
    }
    return true;
  }

  template <class Coder>
  bool code_item_lengths(Coder& coder, DynamicHeader& header) {
    const auto predicted = item_code_lengths(header.items);
    const bool same = coder.bit(same_item_lengths_, header.item_lengths == predicted);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const int length =
          predicted[i] + (same ? 0 : item_length_.code_signed(coder, header.item_lengths[i] - predicted[i]));
      if (length < 0 || length > 7) return false;
      header.item_lengths[i] = static_cast<std::uint8_t>(length);
    }
    const int needed = item_lengths_needed(header.item_lengths);
    const int written = needed + written_.code_signed(coder, header.item_lengths_written - needed);
    if (written < 4 || written > 19) return false;
    header.item_lengths_written = static_cast<std::uint8_t>(written);
    return true;
  }

  struct ItemModels {
    std::array<Chance, 16> repeats;
    Chance is_16, is_18;
    NumberModel repeat;
  };

  Chance same_, same_items_, same_item_lengths_;
  LengthModels lit_len_, distance_;
  std::array<std::array<ItemModels, 2>, 2> items_;
  NumberModel item_length_, written_;
};

}  // namespace kin::formats::deflate
