// Our encoder beside liblzma: of everything that liblzma writes, ours writes the same bytes.
#include "formats/xz/block_encoder.h"
#include "formats/xz/frame.h"
#include "formats/xz/self_test.h"
#include "tests/formats/xz/streams.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;
using formats::xz::Finder;
using formats::xz::Settings;

namespace {

// Repeats a short piece, with a slip now and then: what literals in the midst of matches are for.
Bytes repetitive_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  const Bytes unit = random_bytes(seed, 1 + random.below(300));
  Bytes out;
  while (out.size() < size) {
    append(out, unit);
    if (random.below(5) == 0) out[out.size() - 1 - random.below(unit.size())] ^= 1;
  }
  out.resize(size);
  return out;
}

// Stretches that compress, and others that do not.
Bytes mixed_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Bytes out;
  while (out.size() < size) {
    append(out, random_bytes(random.next(), 1 + random.below(90'000)));
    append(out, text_like(random.next(), 1 + random.below(30'000)));
  }
  out.resize(size);
  return out;
}

Bytes zero_bytes(std::uint64_t, std::size_t size) { return Bytes(size); }

using Generator = Bytes (*)(std::uint64_t seed, std::size_t size);
constexpr Generator kGenerators[] = {random_bytes,     text_like,        compressible_bytes,
                                     structured_bytes, repetitive_bytes, zero_bytes};

Bytes encode(const Bytes& plain, const Settings& settings, std::size_t piece,
             std::uint32_t first_position = 0) {
  const auto encoder = value_of(formats::xz::make_block_encoder(settings, first_position));
  for (ByteView rest = plain; !rest.empty(); rest = rest.subspan(std::min(piece, rest.size())))
    encoder->add(rest.first(std::min(piece, rest.size())));
  encoder->finish();
  return encoder->take();
}

}  // namespace

TEST_CASE("contents of all kinds are encoded as liblzma does, at each preset", "[xz]") {
  Random random(1);
  for (std::uint32_t level = 0; level <= 9; ++level)
    for (const std::uint32_t extreme : {0U, LZMA_PRESET_EXTREME})
      for (const Generator generator : kGenerators) {
        const std::size_t size = 1 + random.below(random.below(4) == 0 ? 60'000 : 3000);
        INFO("preset " << level << (extreme != 0 ? "e" : "") << ", size " << size);
        const Bytes plain = generator(level, size);
        check_comes_back(liblzma_stream(plain, level | extreme), plain);
      }
}

TEST_CASE("large contents are encoded as liblzma does", "[xz]") {
  const Bytes text = text_like(6, 400'000);
  for (const std::uint32_t preset : {1U, 6U}) check_comes_back(liblzma_stream(text, preset), text);
  // Chunks of as much content as there may be.
  const Bytes zeros(5'000'000);
  for (const std::uint32_t preset : {0U, 6U}) check_comes_back(liblzma_stream(zeros, preset), zeros);
  // Stored chunks, after which everything begins anew.
  const Bytes mixed = mixed_bytes(7, 300'000);
  for (const std::uint32_t preset : {2U, 6U}) check_comes_back(liblzma_stream(mixed, preset), mixed);
}

TEST_CASE("the shortest contents are encoded as liblzma does", "[xz]") {
  for (std::size_t size = 1; size < 12; ++size)
    for (const std::uint32_t preset : {0U, 6U}) {
      const Bytes noise = random_bytes(size, size), same(size, 'a');
      check_comes_back(liblzma_stream(noise, preset), noise);
      check_comes_back(liblzma_stream(same, preset), same);
    }
}

TEST_CASE("a dictionary that is smaller than the content is encoded as liblzma does", "[xz]") {
  Bytes plain = text_like(1, 100'000);
  for (int i = 0; i < 3; ++i) append(plain, ByteView(plain));
  for (const std::uint32_t preset : {1U, 6U})
    for (const std::uint32_t dictionary : {4096U, 3U << 15}) {
      lzma_options_lzma options = preset_options(preset);
      options.dict_size = dictionary;
      check_comes_back(liblzma_stream(plain, options), plain);
    }
}

TEST_CASE("other settings than those of presets are found", "[xz]") {
  const Bytes plain = text_like(2, 60'000);
  for (const lzma_match_finder finder : {LZMA_MF_BT2, LZMA_MF_BT3, LZMA_MF_BT4, LZMA_MF_HC3, LZMA_MF_HC4})
    for (const lzma_mode mode : {LZMA_MODE_FAST, LZMA_MODE_NORMAL})
      for (const std::uint32_t nice : {16U, 273U}) {
        lzma_options_lzma options = preset_options(0);
        options.mf = finder;
        options.mode = mode;
        options.nice_len = nice;
        options.depth = 0;
        const auto settings = check_comes_back(liblzma_stream(plain, options), plain);
        REQUIRE(settings.size() == 1);
        CHECK(settings[0].optimal == (mode == LZMA_MODE_NORMAL));
      }
  // Of what the model looks at: lc, lp, pb.
  for (const auto& [context, position, state] :
       {std::tuple(0U, 0U, 0U), {4U, 0U, 4U}, {0U, 4U, 1U}, {1U, 2U, 3U}}) {
    lzma_options_lzma options = preset_options(6);
    options.lc = context;
    options.lp = position;
    options.pb = state;
    check_comes_back(liblzma_stream(plain, options), plain);
  }
}

TEST_CASE("settings that nobody would guess are refused", "[xz]") {
  lzma_options_lzma options = preset_options(6);
  options.nice_len = 61;
  options.depth = 7;
  CHECK(code_of(open_streams(liblzma_stream(compressible_bytes(1, 300'000), options))) ==
        ErrorCode::unsupported);
}

TEST_CASE("blocks of multi-threaded xz come back", "[xz]") {
  const Bytes text = text_like(3, 300'000);
  CHECK(check_comes_back(liblzma_blocks(text, 6, 120'000), text).size() == 1);
  const Bytes mixed = mixed_bytes(4, 300'000);
  CHECK(check_comes_back(liblzma_blocks(mixed, 6, 100'000), mixed).size() == 1);
  check_comes_back(liblzma_blocks({}, 6, 100'000), {});
}

TEST_CASE("blocks that were stored from the first to the last chunk come back", "[xz]") {
  const Bytes noise = random_bytes(4, 200'000);
  lzma_block block{};
  block.check = LZMA_CHECK_CRC32;
  Bytes encoded(noise.size() + 1000);
  std::size_t size = 0;
  REQUIRE(::lzma_block_uncomp_encode(&block, noise.data(), noise.size(), encoded.data(), &size,
                                     encoded.size()) == LZMA_OK);
  Bytes file = formats::xz::stream_header(formats::xz::CheckId::crc32);
  append(file, ByteView(encoded).first(size));
  formats::xz::Index index;
  REQUIRE(index.add(::lzma_block_unpadded_size(&block), noise.size()));
  append(file, index.finish(formats::xz::CheckId::crc32));
  const auto settings = check_comes_back(file, noise);
  REQUIRE(settings.size() == 1);
  CHECK(settings[0].stored);
}

TEST_CASE("streams one after the other, zeros between them and all checks come back", "[xz]") {
  const Bytes text = text_like(1, 20'000);
  Bytes file, plain;
  for (const lzma_check check : {LZMA_CHECK_NONE, LZMA_CHECK_CRC32, LZMA_CHECK_CRC64, LZMA_CHECK_SHA256})
    for (const std::uint32_t preset : {6U, 0U}) {
      append(file, liblzma_stream(text, preset_options(preset), check));
      append(plain, text);
      append(file, liblzma_stream({}, preset_options(1), check));
      file.resize(file.size() + 4 * preset);
    }
  check_comes_back(file, plain);
}

TEST_CASE("what follows the last stream is left", "[xz]") {
  const Bytes text = text_like(1, 3000), stream = liblzma_stream(text, 6);
  for (const Bytes& behind :
       {Bytes{'x'}, Bytes(4), Bytes(7), Bytes{0xfd, '7', 'z', 'X', 'Z', 0, 0, 4, 1, 2, 3, 4}}) {
    Bytes file = stream;
    append(file, behind);
    CHECK(value_of(open_streams(file)).encoded_bytes == stream.size());
  }
  // Zeros that are no whole words, and then a stream.
  Bytes file = stream;
  file.resize(file.size() + 3);
  append(file, stream);
  CHECK(value_of(open_streams(file)).encoded_bytes == stream.size());
}

TEST_CASE("the pieces in which plain bytes come make no difference", "[xz]") {
  const Bytes plain = mixed_bytes(1, 150'000);
  for (const bool optimal : {false, true}) {
    Settings settings;
    settings.optimal = optimal;
    settings.dictionary_bytes = 1 << 16;
    const Bytes whole = encode(plain, settings, plain.size());
    for (const std::size_t piece : {1U, 4369U, 4370U, 65536U})
      CHECK((encode(plain, settings, piece) == whole));
  }
}

TEST_CASE("that positions are numbered anew does not show", "[xz]") {
  const Bytes plain = text_like(1, 300'000);
  for (const Finder finder : {Finder::chain_4, Finder::tree_4}) {
    Settings settings;
    settings.finder = finder;
    settings.dictionary_bytes = 1 << 16;
    const Bytes usual = encode(plain, settings, plain.size());
    CHECK((encode(plain, settings, plain.size(), UINT32_MAX - 100'000) == usual));
    CHECK((encode(plain, settings, plain.size(), UINT32_MAX - 1) == usual));
  }
}

TEST_CASE("with a guess, what comes out is the same", "[xz]") {
  Bytes plain = text_like(1, 1'200'000);
  const Bytes file = liblzma_stream(plain, 1);
  ContainerLimits limits;
  limits.proven_later = true;
  const Opened guessed = value_of(open_streams(file, limits)), proven = value_of(open_streams(file));
  CHECK((guessed.plain == plain));
  CHECK((guessed.corrections == proven.corrections));
}

TEST_CASE("the xz self-test passes", "[xz]") { require_ok(formats::xz::self_test()); }
