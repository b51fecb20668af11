#include "lib/engine/sample_survey.h"

#include "lib/engine/backup.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <unistd.h>

namespace kin {
namespace {

using testing::random_bytes;
using testing::TempDir;
using testing::text_like;

void write(const std::string& path, ByteView bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

struct Surveyed {
  SampleSurvey survey;
  std::size_t files_told = 0;
  std::vector<std::string> skipped;
};

Surveyed look_at(const TempDir& directory, std::uint64_t seed = 0, const Formats& formats = {}) {
  Surveyed out;
  Mutex mutex;
  SurveyRequest request;
  request.walk.sources = {{directory.path(), {"top"}}};
  request.formats = formats;
  request.seed = seed;
  request.on_file = [&](const std::string&) {
    MutexLock lock(mutex);
    ++out.files_told;
  };
  request.on_skipped = [&](const std::string& path, const Error&) {
    MutexLock lock(mutex);
    out.skipped.push_back(path);
  };
  auto survey = survey_files(request, {});
  REQUIRE(survey);
  out.survey = *std::move(survey);
  return out;
}

}  // namespace

TEST_CASE("files that resemble each other share their smallest features, and others do not", "[sample]") {
  const TempDir directory;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Bytes content = text_like(i, 40'000);
    write(directory.path() + "/" + std::to_string(i), content);
    content[30'000] ^= 1;
    write(directory.path() + "/" + std::to_string(i) + ".new", content);
  }
  write(directory.path() + "/empty", {});
  write(directory.path() + "/short", random_bytes(1, 5));
  const Surveyed seen = look_at(directory);
  CHECK(seen.files_told == 42);
  CHECK(seen.survey.files == 42);
  CHECK(seen.survey.bytes == 40 * 40'000 + 5);
  REQUIRE(seen.survey.units.size() == 41);  // nothing is in the empty one
  CHECK(seen.survey.empty == std::vector{sample_file_id("/top/empty")});
  CHECK(FileSample(seen.survey.units, 1).families() == 21);
  for (const SampleUnit& unit : seen.survey.units) {
    CHECK(unit.features.front() != 0);
    CHECK_FALSE(unit.is_container);
    if (unit.bytes != 40'000) continue;
    CHECK(unit.expected > 40'000 * 0.2);
    CHECK(unit.expected < 40'000 * 0.7);
  }
  // Another seed, another sample.
  const Surveyed other = look_at(directory, 1);
  const auto features = [](const SampleSurvey& survey) {
    std::set<std::uint64_t> out;
    for (const SampleUnit& unit : survey.units) out.insert(unit.features.front());
    return out;
  };
  CHECK(features(seen.survey) == features(look_at(directory).survey));
  CHECK(features(seen.survey) != features(other.survey));
}

TEST_CASE("large files are looked at in stretches, without what is a hole", "[sample]") {
  const TempDir directory;
  const std::string path = directory.path() + "/large";
  write(path, random_bytes(1, 100));
  std::filesystem::resize_file(path, 5 * kStretchBytes + 10);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(3 * kStretchBytes);
    file << std::string(kStretchBytes, 'x');
  }
  const SampleSurvey survey = look_at(directory).survey;
  CHECK(survey.bytes == 5 * kStretchBytes + 10);
  std::set<std::uint64_t> stretches;
  for (const SampleUnit& unit : survey.units) stretches.insert(unit.stretch);
  CHECK(stretches == std::set<std::uint64_t>{0, 3});
  CHECK(survey.hole_bytes == 3 * kStretchBytes + 10);
}

TEST_CASE("a hole takes no time, whatever its size", "[sample]") {
  const TempDir directory;
  const std::uint64_t size = std::uint64_t{1} << 43, at = size - 2 * kStretchBytes + 5;  // 8 TiB
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::string path = directory.path() + "/sparse" + std::to_string(i);
    write(path, {});
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(size)) == 0);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file << "something";
  }
  const std::clock_t began = std::clock();  // of this process, whatever else the machine does
  const SampleSurvey survey = look_at(directory).survey;
  CHECK((std::clock() - began) / CLOCKS_PER_SEC < 4);  // 32 million steps take longer
  REQUIRE(survey.units.size() == 16);
  CHECK(survey.units.front().stretch == at / kStretchBytes);
  CHECK(survey.hole_bytes == 16 * (size - kStretchBytes));
}

TEST_CASE("large files of which the same is seen are counted once", "[sample]") {
  const TempDir directory;
  const std::uint64_t size = 3 * kStretchBytes;
  for (const char* const name : {"/a", "/b"}) write(directory.path() + name, random_bytes(1, size));
  write(directory.path() + "/c", random_bytes(2, size));
  write(directory.path() + "/small", random_bytes(3, 1000));
  for (const char* const name : {"/hole", "/another"}) {
    write(directory.path() + name, {});
    std::filesystem::resize_file(directory.path() + name, size);
  }
  const SampleSurvey survey = look_at(directory).survey;
  CHECK(survey.large_bytes == 5 * size);
  CHECK(survey.large.size() == 3);
  for (const auto& [seen, bytes] : survey.large) CHECK(bytes == size);
}

TEST_CASE("a backup of a sample reads what was drawn, and takes the rest for holes", "[sample]") {
  const TempDir directory;
  const Bytes content = random_bytes(1, 3 * kStretchBytes + 1000);
  write(directory.path() + "/large", content);
  write(directory.path() + "/small", random_bytes(2, 5000));
  write(directory.path() + "/other", random_bytes(3, 5000));
  SampleUnit second, small;
  second.file = sample_file_id("/top/large");
  second.features.front() = 1;
  second.stretch = 1;
  second.bytes = kStretchBytes;
  small.file = sample_file_id("/top/small");
  small.features.front() = 2;
  small.bytes = 5000;
  const FileSample sample({second, small}, 1);

  testing::FaultyDisk disk;
  testing::create_repository(disk);
  const auto repository = testing::reopen(disk);
  REQUIRE(repository->begin_writing({}));
  BackupRequest request;
  request.walk.sources = {{directory.path(), {"top"}}};
  request.sample = &sample;
  BackupObserver observer;
  const auto result = backup(*repository, repository->index(), request, observer, {});
  REQUIRE(result);
  CHECK(result->summary.files == 2);
  CHECK(result->summary.bytes == content.size() + 5000);
  CHECK(result->summary.skipped == 0);

  std::map<std::string, std::vector<Extent>> contents;
  TreeCursor top(*repository, result->tree);
  const auto directory_node = top.next();
  REQUIRE((directory_node && *directory_node));
  TreeCursor files(*repository, (*directory_node)->subtree);
  for (auto node = files.next(); node && *node; node = files.next())
    contents[(*node)->name] = (*node)->content;
  REQUIRE(contents.size() == 2);
  std::uint64_t at = 0;
  for (const Extent& extent : contents.at("large")) {
    const bool is_drawn = at >= kStretchBytes && at < 2 * kStretchBytes;
    CHECK((extent.kind == Extent::Kind::data) == is_drawn);
    if (is_drawn) {
      const auto object = repository->load(extent.id);
      REQUIRE(object);
      CHECK(equal(**object, ByteView(content).subspan(at, extent.size)));
    }
    at += extent.size;
  }
  CHECK(at == content.size());
}

}  // namespace kin
