// FileSample: some of the files, and what they say of all.
//
// Problem: what a file takes depends on what resembles it. Draw files by lot, and most of them have lost
// their kin: they take more than they would.
//
// Idea: draw by content. A unit's smallest features are numbers that are as good as random, and that units
// which resemble each other mostly share: with a probability that is just their resemblance (Broder). Those
// that do are a family (sample_families.h), and a family is drawn as a whole or not at all: if its number is
// below its chance. Families differ much in size, so the large ones get better chances: the least error for
// the time it takes is had by chances that are as what a family is expected to take, over the root of its
// time. But small ones must not become so few that they are strangers to each other.
//
// What is measured of the drawn is set in relation to what was expected of them, which is known of all: a
// ratio estimate, for large and small units and containers each. Its error is told by how far families are
// off that ratio. Heavy families that were not drawn would be overlooked so: the error is scaled by what they
// are expected to bring, which is known too. Families that were sure to be drawn are counted as they are, and
// say nothing of others; of each of those strata that are a notable part of all, enough families are drawn to
// say something, and of the rest it may be that nothing is known but that it takes between nothing and all.
//
// Kin of other families are lost all the same. How much that costs is measured: the families of half the
// sample are stored once more, without the other half. What they take more then is what each halving costs.
//
// Rejected: the same chance for all (six releases of three.js: 4 to 14 % where it is 8.6 %); to draw by name
// or directory (kin that were moved or renamed); to follow the trend of estimates from smaller samples, whose
// errors are several times larger than the trend.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kin {

inline constexpr std::uint64_t kStretchBytes = 4 << 20;

// A file's name in a sample, from its path in the snapshot: "/" and names.
std::uint64_t sample_file_id(std::string_view tree_path);

// A file or, of a large one, a stretch: it begins at a multiple of kStretchBytes.
struct SampleUnit {
  std::uint64_t file = 0;  // sample_file_id()
  // The smallest of its front, as good as random. 0: none.
  static constexpr std::size_t kFeatures = 4;
  std::array<std::uint64_t, kFeatures> features{};
  std::uint64_t stretch = 0;  // which of the file
  std::uint32_t bytes = 0;
  float expected = 0;  // what it takes if all of it is as its front, compressed alone
  bool is_container = false;
  bool is_stretch = false;  // of a large file
};

// A number between two, with the chance of 95 % that the true one is there.
struct Estimated {
  double value = 0, low = 0, high = 0;

  Estimated& operator+=(double known) {
    value += known;
    low += known;
    high += known;
    return *this;
  }
};

class FileSample {
 public:
  struct Drawn {
    std::uint64_t begin = 0, end = 0;  // its place in the file
    std::uint32_t family = 0;          // the index

    bool is_empty() const { return begin == end; }  // and of no family
  };

  // About this part of them, by the time that they take: up to 1, which is all. More if that were too few to
  // say anything. `empty`: files without any content, of no family, which are in every sample;
  // sample_file_id().
  FileSample(const std::vector<SampleUnit>& units, double part, std::span<const std::uint64_t> empty = {});

  // About half of its families, with the same indices: those that would be in it if all chances were half.
  FileSample half() const;

  std::size_t families() const { return families_.size(); }
  std::uint64_t bytes() const { return bytes_; }  // of the drawn
  std::uint64_t files() const { return drawn_.size(); }
  std::uint64_t drawn_families() const;
  // The part of all that is in the sample, by what is expected: 0 to 1.
  double share() const;
  // What is drawn of a file, in order; of an empty one a place where nothing is.
  std::span<const Drawn> drawn_of(std::string_view tree_path) const;

  // What is taken to grow with what: with the sizes of units that are files; with what each is expected to
  // take by itself; with what a family is expected to take, of which all but one have kin; with the objects
  // they are made of.
  enum class By { size, expected, kin, objects };
  // What all take, if these are what the drawn families take, by index; of others it does not matter.
  Estimated estimate(std::span<const double> taken, By by) const;
  double chance(std::uint32_t family) const { return families_[family].chance; }
  // The sum over the drawn, each over its chance.
  double weighted(std::span<const double> taken) const;

 private:
  FileSample() = default;

  static constexpr std::size_t kStrata = 4;
  struct Family {
    std::uint64_t number = 0, bytes = 0, file_bytes = 0, units = 0;
    double expected = 0, effort = 0, objects = 0, chance = 0;
    std::uint8_t stratum = 0;
    bool is_drawn = false;

    bool is_sure() const { return chance >= 1; }
    double size(By by) const;
  };

  void set_chances(double part);
  void draw_enough_of(std::uint8_t stratum, double part);
  void settle_complete();
  void join_strata();

  std::vector<Family> families_;
  std::array<std::uint8_t, kStrata> joined_{};  // where too few were drawn, with another
  std::unordered_map<std::uint64_t, std::vector<Drawn>> drawn_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kin
