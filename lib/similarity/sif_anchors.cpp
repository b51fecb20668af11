#include "lib/similarity/sif_anchors.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace kin {
namespace {

constexpr std::size_t kTooCommonBytes = 4096, kBytesPerAnchor = 200, kMostAnchors = 256;

constexpr const char* kUsualAnchors[] = {
    "abil", "acce", "ased", "cial", "cuta", "gati", "ible", "obje", "pond", "pply", "rate",
    "rega", "rres", "thos", "utab", "will", "addi", "char", "each", "erci", "iant", "mina",
};

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

std::vector<std::string> choose_anchors(ByteView sample) {
  std::map<std::string_view, std::size_t> times;
  const std::string_view text = as_text(sample);
  std::size_t letters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    letters = is_small_letter(text[i]) ? letters + 1 : 0;
    if (letters >= kAnchorBytes) ++times[text.substr(i + 1 - kAnchorBytes, kAnchorBytes)];
  }
  std::vector<std::pair<std::string_view, std::size_t>> kept;
  for (const auto& entry : times)
    if (entry.second * kTooCommonBytes <= text.size()) kept.emplace_back(entry);
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> out;
  std::size_t found = 0;
  for (const auto& [anchor, count] : kept) {
    if (found * kBytesPerAnchor >= text.size() || out.size() == kMostAnchors) break;
    out.emplace_back(anchor);
    found += count;
  }
  return out;
}

std::span<const char* const> usual_anchors() { return kUsualAnchors; }

AnchorSet::AnchorSet(std::span<const char* const> anchors) {
  for (const char* const anchor : anchors) {
    const std::uint32_t word = load(as_bytes(anchor).data());
    std::size_t place = place_of(word);
    while (table_[place] != 0) place = (place + 1) % kPlaces;
    table_[place] = word;
  }
}

bool AnchorSet::contains_behind(std::uint32_t word) const {
  for (std::size_t place = place_of(word); table_[place] != 0; place = (place + 1) % kPlaces)
    if (table_[place] == word) return true;
  return false;
}

}  // namespace kin
