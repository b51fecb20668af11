#include "lib/engine/detector_study.h"

#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <filesystem>
#include <fstream>

namespace kin {
namespace {

// Five pairs of kin in noise, which does not compress: what is saved is what was found.
std::vector<ComparedFile> write_pairs(const testing::TempDir& directory) {
  std::vector<ComparedFile> out;
  for (std::uint64_t i = 0; i < 10; ++i) {
    Bytes content = testing::random_bytes(i / 2, 40'000);
    content[20'000 + i] ^= 1;
    const std::string path = directory / std::to_string(i);
    std::ofstream(path, std::ios::binary) << as_text(content);
    out.push_back({path, content.size(), 0, i});
  }
  return out;
}

}  // namespace

TEST_CASE("a study counts bases, bytes and recall of each detector", "[detector_study]") {
  const testing::TempDir directory;
  const std::vector<ComparedFile> files = write_pairs(directory);
  StudyOptions options;
  options.jobs = 2;
  for (const DetectorEntry& entry : all_detectors())
    if (!entry.variant) options.detectors.push_back(&entry);
  const StudyResult result = testing::value_of(study_detectors(
      files, options, testing::MemoryKeyStore::make, [](const std::string&, const Error&) {},
      [](const std::string&) {}, {}));
  CHECK(result.files == 10);
  CHECK(result.bytes == 400'000);
  CHECK(result.alone_bytes == 400'000);
  CHECK(result.sampled == 10);
  CHECK(result.with_kin == 10);
  REQUIRE(result.detectors.size() == options.detectors.size());
  for (const DetectorStudy& study : result.detectors) {
    INFO(study.detector->name);
    CHECK(study.recalled == 10);
    CHECK(study.useful == 5);  // the first of each pair has nothing before it
    CHECK(study.bytes < 202'000);
    CHECK(study.bytes >= 200'000);
  }
}

TEST_CASE("a study names what cannot be opened, leaves out what is too large, and takes no files at all",
          "[detector_study]") {
  const testing::TempDir directory;
  std::vector<ComparedFile> files = write_pairs(directory);
  files.push_back({directory / "none", 10, 0, 99});
  files.push_back({files[0].path, std::uint64_t{1} << 40, 0, 98});
  StudyOptions options;
  options.detectors = {find_detector("tsa")};
  options.sample = 0;
  std::string told;
  const auto study = [&](const std::vector<ComparedFile>& of) {
    return testing::value_of(study_detectors(
        of, options, testing::MemoryKeyStore::make,
        [&](const std::string&, const Error& error) { told += error.message(); }, [](const std::string&) {},
        {}));
  };
  const StudyResult result = study(files);
  CHECK(result.left_out == 1);
  CHECK(result.files == 10);
  CHECK(told.find("none: No such file") != std::string::npos);
  CHECK(study({}).files == 0);
}

TEST_CASE("a file that vanishes during a study is told of once, and the others go on", "[detector_study]") {
  const testing::TempDir directory;
  const std::vector<ComparedFile> files = write_pairs(directory);
  StudyOptions options;
  options.detectors = {find_detector("features"), find_detector("sif"), find_detector("tsa")};
  int told = 0;
  const StudyResult result = testing::value_of(study_detectors(
      files, options, testing::MemoryKeyStore::make, [&](const std::string&, const Error&) { ++told; },
      [&](const std::string& what) {
        if (what == "files by sif") std::filesystem::remove(files[4].path);
      },
      {}));
  CHECK(told == 1);
  CHECK(result.files == 9);
  CHECK(result.left_out == 0);
  REQUIRE(result.detectors.size() == 3);
  for (const DetectorStudy& study : result.detectors) CHECK(study.useful == 4);
}

}  // namespace kin
