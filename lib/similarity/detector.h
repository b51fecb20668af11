// Detector: one way to tell whether files resemble each other, behind one interface for all of them.
//
// A detector makes a Print of each file, which is small and all that it keeps of it. A PrintIndex holds the
// prints of many files and finds those that are like a given one. That serves the three questions:
//   one against all   add all, then find() the one;
//   all against all   for each file find() among those before it, then add() it: every pair is met once;
//   choose a base     the same, and the first match is the base.
// What a similarity means is the detector's own; 1 is "equal, as far as can be told". Only the order is
// comparable between detectors, and the bytes that their choices save (kin study detectors).
#pragma once

#include "lib/similarity/content_reader.h"
#include "lib/similarity/key_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace kin {

// Equal files have equal prints. Empty values: the file is too short for this detector, or the same all
// through, and like no other.
struct Print {
  std::uint64_t file_bytes = 0;
  std::uint32_t kind = 0;      // files of different kinds are not compared
  std::uint32_t checksum = 0;  // of the whole content, if the detector reads it and wants one
  std::uint64_t key = 0;       // a place in a KeyStore, if the detector has one
  std::vector<std::uint64_t> values;

  bool operator==(const Print&) const = default;
};

struct Match {
  std::uint32_t file = 0;
  double similarity = 0;  // how much of the file that was asked for the other one has
  double reverse = 0;     // and the other way round; the same, where the measure is symmetric
};

struct FindLimits {
  std::size_t most_matches = SIZE_MAX;
  double least_similarity = 0;  // of either direction
  // How many of the newest files that share a value, or lie near a key, are looked at; 0: all. A bound makes
  // all against all linear, however many files resemble each other.
  std::size_t most_looked_at = 0;
};

// One thread at a time. Files are numbers that the caller gives, ascending.
class PrintIndex {
 public:
  virtual ~PrintIndex() = default;

  virtual Result<void> add(std::uint32_t file, const Print& print) = 0;
  // The best first. Of equal ones, that which shares what is rarer, then the newest. Depends on what was
  // added and in which order, and on nothing else.
  virtual Result<std::vector<Match>> find(const Print& print, const FindLimits& limits) = 0;
  // The similarity of two prints, as find() would tell it, whatever was added; 0 where find() tells nothing.
  virtual Match compare(const Print& print, const Print& other) const = 0;

  struct Counts {
    std::uint64_t candidates = 0;  // files that find() has looked at
    std::uint64_t matches = 0;     // those of them that it took for similar, whatever the limits
  };
  const Counts& counts() const { return counts_; }
  virtual std::uint64_t bytes() const = 0;  // of memory, about

 protected:
  Counts counts_;
};

// Thread-safe.
class Detector {
 public:
  virtual ~Detector() = default;

  // `name` is that of the file: some look at its suffix. An error is one of reading.
  virtual Result<Print> print(ContentReader& content, std::string_view name) const = 0;
  virtual Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore& make_keys) const = 0;
  // A similarity from which on files should be shown to people who said nothing else.
  virtual double usual_similarity() const { return 0.25; }
  // Whether files that have a value in common have something in common.
  virtual bool values_are_a_set() const { return true; }
};

struct DetectorEntry {
  const char* name;
  const char* summary;
  bool variant;  // of the row above: for who asks for it
  std::unique_ptr<Detector> (*make)();
};

// The visible table of all detectors; conformance tests loop over it. The first is the default.
std::span<const DetectorEntry> all_detectors();
const DetectorEntry* find_detector(std::string_view name);  // null: there is none

}  // namespace kin
