// The parts of formats/xz that can be tested by themselves.
#include "formats/xz/content_check.h"
#include "formats/xz/decoder.h"
#include "formats/xz/frame.h"
#include "formats/xz/presets.h"
#include "formats/xz/prices.h"
#include "formats/xz/survey.h"
#include "tests/formats/xz/streams.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

using namespace kin;
using namespace kin::testing;
using namespace kin::formats::xz;

namespace {

std::string hex_of(ByteView bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace

TEST_CASE("checks are those of the standards", "[xz]") {
  const auto check_of = [](CheckId id, ByteView bytes, std::size_t step) {
    ContentCheck check(id);
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(step, bytes.size())))
      check.add(bytes.first(std::min(step, bytes.size())));
    return hex_of(check.finish());
  };
  for (const std::size_t step : {1U, 7U, 64U, 1000U}) {
    CHECK(check_of(CheckId::crc32, as_bytes("123456789"), step) == "2639f4cb");
    CHECK(check_of(CheckId::crc64, as_bytes("123456789"), step) == "fa3919dfbbc95d99");
    CHECK(check_of(CheckId::sha256, as_bytes("abc"), step) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(check_of(CheckId::sha256, as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                   step) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  }
  CHECK(check_of(CheckId::sha256, {}, 1) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(check_of(CheckId::none, as_bytes("abc"), 1).empty());
}

TEST_CASE("slots have the highest bits of a distance", "[xz]") {
  for (std::uint32_t distance = 0; distance < 4; ++distance) CHECK(slot_of(distance) == distance);
  for (std::uint32_t slot = kFirstModelledSlot; slot < kSlots; ++slot) {
    CHECK(slot_of(slot_base(slot)) == slot);
    CHECK(slot_of(slot_base(slot) + ((1U << slot_low_bits(slot)) - 1)) == slot);
  }
}

TEST_CASE("a bit that is as likely as not costs sixteen sixteenths", "[xz]") {
  CHECK(zero_price(kProbabilityTotal / 2) == 16);
  CHECK(one_price(kProbabilityTotal / 2 - 1) == 16);
  CHECK(zero_price(31) == 103);
  CHECK(zero_price(kProbabilityTotal - 31) == 1);
}

TEST_CASE("headers of blocks with other filters are not understood", "[xz]") {
  CHECK(parse_block_header(as_bytes("")) == std::nullopt);
  lzma_options_lzma options = preset_options(6);
  const lzma_filter filters[] = {
      {LZMA_FILTER_X86, nullptr}, {LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  lzma_stream stream = LZMA_STREAM_INIT;
  REQUIRE(::lzma_stream_encoder(&stream, filters, LZMA_CHECK_CRC32) == LZMA_OK);
  CHECK(code_of(open_streams(run_liblzma(stream, text_like(1, 1000)))) == ErrorCode::unsupported);
}

TEST_CASE("the presets of a dictionary's size are tried first", "[xz]") {
  Settings known;
  for (std::uint32_t level = 0; level <= 9; ++level) {
    const lzma_options_lzma options = preset_options(level);
    known.dictionary_bytes = options.dict_size;
    const std::vector<Settings> all = likely_settings(known);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Settings& one) {
      return static_cast<int>(one.finder) == options.mf && one.nice_length == options.nice_len &&
             one.optimal == (options.mode == LZMA_MODE_NORMAL);
    });
    CHECK(found - all.begin() < 5);
  }
}

TEST_CASE("a survey adds up the content of all blocks", "[xz]") {
  const Survey survey = survey_streams(liblzma_blocks(text_like(1, 250'000), 0, 100'000));
  CHECK(survey.plain_bytes == 250'000);
  CHECK(survey.table_bytes > 8 * 100'000);
  CHECK(survey_streams(as_bytes("no stream")).plain_bytes == 0);
}
