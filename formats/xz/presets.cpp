// A block says how large its dictionary is, and what the model looks at. It does not say how the encoder
// searched. Nearly all are written by one of the presets of xz, which are nine ways to search; 4e to 9e and
// 0e to 2e are one of them, as are 6 to 9. A wrong guess shows within the first hundreds of bytes, so that
// some more cost little.
#include "formats/xz/presets.h"

namespace kin::formats::xz {
namespace {

struct Search {
  bool optimal;
  Finder finder;
  std::uint32_t nice_length, depth;
  int least_log, most_log;  // of the dictionaries of presets that search so
};

constexpr std::uint32_t tree_depth(std::uint32_t nice_length) { return 16 + nice_length / 2; }
constexpr std::uint32_t chain_depth(std::uint32_t nice_length) { return 4 + nice_length / 4; }

constexpr Search kPresets[] = {
    {true, Finder::tree_4, 64, tree_depth(64), 23, 26},    // 6 to 9
    {true, Finder::tree_4, 273, 512, 18, 26},              // 0e to 2e, 4e, 6e to 9e
    {true, Finder::tree_4, 32, tree_depth(32), 23, 23},    // 5
    {true, Finder::tree_4, 192, tree_depth(192), 22, 23},  // 3e, 5e
    {false, Finder::chain_4, 273, 48, 22, 22},             // 3
    {true, Finder::tree_4, 16, tree_depth(16), 22, 22},    // 4
    {false, Finder::chain_4, 273, 24, 21, 21},             // 2
    {false, Finder::chain_4, 128, 8, 20, 20},              // 1
    {false, Finder::chain_3, 128, 4, 18, 18},              // 0
};
constexpr std::uint32_t kNiceLengths[] = {273, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8};

}  // namespace

std::vector<Settings> likely_settings(const Settings& known) {
  std::vector<Settings> out;
  const auto add = [&](const Search& search) {
    Settings settings = known;
    settings.stored = false;
    settings.optimal = search.optimal;
    settings.finder = search.finder;
    settings.nice_length = search.nice_length;
    settings.depth = search.depth;
    out.push_back(settings);
  };
  const auto is_usual = [&](const Search& search) {
    const int log = std::bit_width(known.dictionary_bytes) - 1;
    return std::has_single_bit(known.dictionary_bytes) && log >= search.least_log && log <= search.most_log;
  };
  for (const Search& search : kPresets)
    if (is_usual(search)) add(search);
  for (const Search& search : kPresets)
    if (!is_usual(search)) add(search);
  // Those who choose by hand choose round numbers.
  for (const std::uint32_t nice : kNiceLengths)
    for (const Finder finder :
         {Finder::tree_4, Finder::tree_3, Finder::tree_2, Finder::chain_4, Finder::chain_3})
      for (const bool optimal : {true, false}) {
        const std::uint32_t depth = is_tree(finder) ? tree_depth(nice) : chain_depth(nice);
        add({optimal, finder, nice, depth, 0, 0});
      }
  return out;
}

}  // namespace kin::formats::xz
