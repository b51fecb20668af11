// bzip2 begins with tables that each prefer a range of symbols, the ranges of about equal weight. Four times
// it gives each group to the table that is cheapest for it, and makes each table anew from its groups.
//
// The costs of a group in all tables are summed at once, ten bits each in one word: fifty codes of at most
// twenty bits fit.
#include "formats/bzip2/tables.h"

#include "formats/bzip2/code_lengths.h"

#include <algorithm>
#include <span>

namespace kin::formats::bzip2 {
namespace {

constexpr int kRounds = 4;
constexpr std::uint8_t kPreferredCost = 0, kOtherCost = 15;
constexpr std::uint32_t kCostBits = 10;
static_assert(kMostTables * kCostBits <= 64 && kGroupSymbols * kMostCodeBits < 1U << kCostBits);

using Frequencies = std::array<std::uint32_t, kMostSymbols>;

std::size_t table_count(std::size_t symbols) {
  if (symbols < 200) return 2;
  if (symbols < 600) return 3;
  if (symbols < 1200) return 4;
  return symbols < 2400 ? 5 : 6;
}

// Costs in place of lengths. The ranges go to the tables from the last to the first.
void set_first_costs(Tables& tables, const Frequencies& frequencies, std::size_t alphabet,
                     std::size_t symbols) {
  std::size_t left = symbols, begin = 0;
  for (std::size_t part = tables.count; part > 0; --part) {
    const std::size_t share = left / part;
    std::size_t end = begin, sum = 0;
    while (sum < share && end < alphabet) sum += frequencies[end++];
    // What goes beyond the share is left to the next range, in every second one: so they even out.
    const bool inner = part != tables.count && part != 1;
    if (end > begin + 1 && inner && (tables.count - part) % 2 == 1) sum -= frequencies[--end];
    CodeLengths& costs = tables.lengths[part - 1];
    std::fill_n(costs.begin(), alphabet, kOtherCost);
    std::fill(costs.begin() + static_cast<std::ptrdiff_t>(begin),
              costs.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end)), kPreferredCost);
    begin = end;
    left -= sum;
  }
}

// Calls use(table, group) for each group, with the table in which it is cheapest.
template <class Use>
void for_each_group(const Tables& tables, const Symbols& symbols, const Use& use) {
  std::array<std::uint64_t, kMostSymbols> costs{};
  for (std::size_t symbol = 0; symbol < symbols.alphabet; ++symbol)
    for (std::size_t table = 0; table < tables.count; ++table)
      costs[symbol] |= std::uint64_t{tables.lengths[table][symbol]} << (kCostBits * table);
  const std::span<const std::uint16_t> values(symbols.values);
  for (std::size_t begin = 0; begin < values.size(); begin += kGroupSymbols) {
    const auto group = values.subspan(begin, std::min(kGroupSymbols, values.size() - begin));
    std::uint64_t sums = 0;
    for (const std::uint16_t value : group) sums += costs[value];
    std::uint32_t best_cost = ~0U;
    std::size_t best = 0;
    for (std::size_t table = 0; table < tables.count; ++table) {
      const auto cost = static_cast<std::uint32_t>(sums >> (kCostBits * table)) & ((1U << kCostBits) - 1);
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = table;
    }
    use(best, group);
  }
}

}  // namespace

Tables choose_tables(const Symbols& symbols) {
  Frequencies all{};
  for (const std::uint16_t value : symbols.values) ++all[value];
  Tables out;
  out.count = table_count(symbols.values.size());
  set_first_costs(out, all, symbols.alphabet, symbols.values.size());
  for (int round = 0; round < kRounds; ++round) {
    std::array<Frequencies, kMostTables> frequencies{};
    out.selectors.clear();
    for_each_group(out, symbols, [&](std::size_t table, std::span<const std::uint16_t> group) {
      out.selectors.push_back(static_cast<std::uint8_t>(table));
      for (const std::uint16_t value : group) ++frequencies[table][value];
    });
    for (std::size_t table = 0; table < out.count; ++table)
      out.lengths[table] = make_code_lengths(std::span(frequencies[table]).first(symbols.alphabet));
  }
  return out;
}

std::vector<std::uint8_t> cheapest_selectors(const Tables& tables, const Symbols& symbols) {
  std::vector<std::uint8_t> out;
  for_each_group(tables, symbols, [&](std::size_t table, std::span<const std::uint16_t>) {
    out.push_back(static_cast<std::uint8_t>(table));
  });
  return out;
}

}  // namespace kin::formats::bzip2
