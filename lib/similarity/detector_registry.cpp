#include "lib/similarity/detector.h"

namespace kin {

std::unique_ptr<Detector> make_epas_detector();
std::unique_ptr<Detector> make_features_detector();
std::unique_ptr<Detector> make_pas_detector();
std::unique_ptr<Detector> make_sif_anchor_detector();
std::unique_ptr<Detector> make_sif_detector();
std::unique_ptr<Detector> make_simhash_detector();
std::unique_ptr<Detector> make_simihash_detector();
std::unique_ptr<Detector> make_simihash_skew_detector();
std::unique_ptr<Detector> make_simihash_uniform_detector();
std::unique_ptr<Detector> make_simihash_uniform_extension_detector();
std::unique_ptr<Detector> make_tsa_detector();

namespace {

constexpr DetectorEntry kDetectors[] = {
    // name, summary, is a variant, factory
    {"features", "kin's own sketches: most matching features", false, make_features_detector},
    {"sif", "fingerprints of 50-byte substrings, chosen by their low bits", false, make_sif_detector},
    {"sif-anchors", "the same, chosen by the strings that they begin with", true, make_sif_anchor_detector},
    {"simihash", "counts of bit patterns, searched by skew keys with the suffix", false,
     make_simihash_detector},
    {"simihash-skew", "the same without the suffix", true, make_simihash_skew_detector},
    {"simihash-uniform", "the same with equal weights", true, make_simihash_uniform_detector},
    {"simihash-uniform-suffix", "equal weights, with the suffix", true,
     make_simihash_uniform_extension_detector},
    {"pas", "sampled blocks at places that growth leaves alone", false, make_pas_detector},
    {"epas", "sampled blocks from the head and the tail", false, make_epas_detector},
    {"tsa", "sampled blocks at equal distances", false, make_tsa_detector},
    {"simhash", "CRC-32 of all 8-byte substrings, the 128 smallest", false, make_simhash_detector},
};

}  // namespace

std::span<const DetectorEntry> all_detectors() { return kDetectors; }

const DetectorEntry* find_detector(std::string_view name) {
  for (const DetectorEntry& entry : kDetectors)
    if (name == entry.name) return &entry;
  return nullptr;
}

}  // namespace kin
