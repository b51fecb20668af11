// .xz streams and corrections that are damaged, forged or too large: they are refused or come back exactly,
// and nothing takes memory or time without end.
#include "formats/xz/frame.h"
#include "tests/formats/damaged_streams.h"
#include "tests/formats/xz/streams.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;
using namespace kin::formats::xz;

namespace {

std::vector<Bytes> small_streams() {
  Bytes two = liblzma_stream(text_like(2, 90), preset_options(1), LZMA_CHECK_CRC32);
  two.resize(two.size() + 4);
  append(two, liblzma_stream(Bytes(700, 'z'), preset_options(0), LZMA_CHECK_NONE));
  return {liblzma_stream(text_like(1, 400), 0), two, liblzma_blocks(text_like(1, 300), 0, 200)};
}

const StreamCoding kXz{[](const Bytes& file) { return open_streams(file); }, rebuild_streams};

}  // namespace

TEST_CASE("an xz stream cut at any length is refused", "[xz]") {
  const Bytes whole = liblzma_stream(text_like(1, 400), 0);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(open_streams(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))));
}

TEST_CASE("an xz stream with any bit changed is refused or comes back exactly", "[xz]") {
  check_each_bit(small_streams(), kXz);
}

TEST_CASE("corrections of xz that are changed or cut give an error or other bytes, and an end", "[xz]") {
  check_damaged_corrections(small_streams(), kXz);
}

TEST_CASE("corrections of xz for other content are corrupt, or give other bytes", "[xz]") {
  check_other_content(small_streams(), kXz);
}

TEST_CASE("corrections of xz that go on behind their end are corrupt", "[xz]") {
  Opened opened = value_of(open_streams(small_streams()[0]));
  opened.corrections.push_back(0);
  CHECK(code_of(rebuild_streams(opened.plain, opened.corrections)) == ErrorCode::corrupt);
}

TEST_CASE("corrections of xz of a later version are refused as such", "[xz]") {
  check_later_version(small_streams()[0], kXz);
}

TEST_CASE("a stream whose encoder would take too much memory is refused at once", "[xz]") {
  const Bytes zeros(20 << 20);
  const Bytes file = liblzma_stream(zeros, 9);
  const auto opened = open_streams(file);
  CHECK(code_of(opened) == ErrorCode::unsupported);
  // The same dictionary for less content is no trouble.
  const Bytes less(1 << 20);
  check_comes_back(liblzma_stream(less, 9), less);
}

TEST_CASE("further down, streams are refused for less memory than at the top", "[xz]") {
  ContainerLimits limits;
  limits.memory_bytes = 1 << 20;
  // The tables of preset 6 take 16 MiB, and eight bytes for each of the content.
  const Bytes plain(2 << 20);
  const Bytes file = liblzma_stream(plain, 6);
  CHECK(code_of(open_streams(file, limits)) == ErrorCode::unsupported);
  check_comes_back(file, plain);
  CHECK((value_of(open_streams(liblzma_stream(plain, 1), limits)).plain == plain));

  const Bytes noise = random_bytes(1, 9 << 20);
  const Bytes large = liblzma_stream(noise, 0);
  CHECK(code_of(open_streams(large, limits)) == ErrorCode::unsupported);
  limits.memory_bytes = 2 << 20;
  CHECK((value_of(open_streams(large, limits)).plain == noise));
}

TEST_CASE("a search that takes too long ends", "[xz]") {
  SearchBudget budget(SearchLimits{1000, 0});
  ContainerLimits limits;
  limits.search = &budget;
  CHECK(code_of(open_streams(liblzma_stream(text_like(1, 100'000), 6), limits)) == ErrorCode::unsupported);
}

TEST_CASE("encoders that are made for many small blocks count", "[xz]") {
  const Bytes plain = text_like(1, 40'000);
  const Bytes file = liblzma_blocks(plain, 0, 100);
  SearchBudget little(SearchLimits{400 * kStepsOfEncoder / 2, 0}), usual;
  ContainerLimits limits;
  limits.search = &little;
  CHECK(code_of(open_streams(file, limits)) == ErrorCode::unsupported);
  usual.add_bytes(file.size());
  limits.search = &usual;
  CHECK((value_of(open_streams(file, limits)).plain == plain));
}
