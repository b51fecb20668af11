// PNG and PDF: files put together here, byte by byte, around zlib streams of a real program.
#include "formats/checksums.h"
#include "lib/container/recipe.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace kin;
using namespace kin::testing;

namespace {

// As zlib makes it.
Bytes zlib_stream(const Bytes& plain, int level = 6) {
  TempDir dir;
  write_bytes(dir / "plain", plain);
  run_in(dir, "python3 -c \"import zlib; open('z','wb').write(zlib.compress(open('plain','rb').read()," +
                  std::to_string(level) + "))\"");
  return read_bytes(dir / "z");
}

void add_big_endian(Bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

void add_chunk(Bytes& png, std::string_view type, ByteView content) {
  add_big_endian(png, static_cast<std::uint32_t>(content.size()));
  formats::Crc32 sum;
  sum.add(as_bytes(type));
  sum.add(content);
  append(png, as_bytes(type));
  append(png, content);
  add_big_endian(png, sum.value());
}

// Small files are not opened.
constexpr std::size_t kPadding = 4096;

// With the stream in chunks of these lengths, and the rest of it in a last one.
Bytes png_of(ByteView stream, const std::vector<std::size_t>& lengths = {}) {
  Bytes png;
  append(png, as_bytes("\x89PNG\r\n\x1a\n"));
  add_chunk(png, "IHDR", Bytes(13, 1));
  add_chunk(png, "tEXt", as_bytes("Comment: of no importance"));
  for (const std::size_t length : lengths) {
    const std::size_t size = std::min(length, stream.size());
    add_chunk(png, "IDAT", stream.first(size));
    stream = stream.subspan(size);
  }
  add_chunk(png, "IDAT", stream);
  add_chunk(png, "eXIf", Bytes(kPadding, 0));
  add_chunk(png, "IEND", {});
  return png;
}

void add_object(Bytes& pdf, const std::string& dictionary, ByteView content, const char* line_end = "\n") {
  append(pdf, as_bytes("7 0 obj\n<< " + dictionary + " >>\nstream" + line_end));
  append(pdf, content);
  append(pdf, as_bytes("\nendstream\nendobj\n"));
}

Bytes pdf_start() {
  Bytes pdf;
  append(pdf, as_bytes("%PDF-1.5\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"));
  return pdf;
}

}  // namespace

TEST_CASE("the sums are those that everybody computes", "[containers]") {
  formats::Crc32 crc;
  crc.add(as_bytes("12345"));
  crc.add(as_bytes("6789"));
  CHECK(crc.value() == 0xcbf43926);
  formats::Adler32 adler;
  adler.add(as_bytes("Wiki"));
  adler.add(as_bytes("pedia"));
  CHECK(adler.value() == 0x11e60398);
  formats::Adler32 large;
  large.add(Bytes(1'000'000, 255));
  CHECK(large.value() == 0x3843e1be);
}

TEST_CASE("a PNG opens to its rows, however its image is cut into chunks", "[containers][png]") {
  const Bytes rows = text_like(31, 100'000);
  const Bytes stream = zlib_stream(rows);
  REQUIRE(stream.size() > 30000);
  const std::vector<std::vector<std::size_t>> cuts = {{},
                                                      {8192, 8192, 8192},
                                                      {10000, 12000},
                                                      {0, 5000, 0, 0, 3},
                                                      {1, 1, 1},
                                                      {2},
                                                      {stream.size()},
                                                      {stream.size() - 4},
                                                      {stream.size() - 5, 1, 1},
                                                      {stream.size() - 2, 0, 0},
                                                      std::vector<std::size_t>(500, 1)};
  for (const auto& cut : cuts) {
    CAPTURE(cut);
    const Bytes png = png_of(stream, cut);
    OpenedContainer opened = open_container(png);
    check_exact(opened, png);
    CHECK(has_object(opened, rows));
  }
}

TEST_CASE("what follows an image's stream, or the PNG, is kept", "[containers][png]") {
  const Bytes rows = text_like(32, 50'000);
  const Bytes good = zlib_stream(rows);
  Bytes wrong_sum = good, no_sum(good.begin(), good.end() - 4), longer = good;
  wrong_sum.back() ^= 1;
  longer.insert(longer.end(), {1, 2, 3});
  for (const Bytes& stream : {wrong_sum, no_sum, longer})
    for (const std::size_t length : {std::size_t{8000}, stream.size() - 1}) {
      Bytes png = png_of(stream, {length});
      append(png, as_bytes("something else"));
      OpenedContainer opened = open_container(png);
      check_exact(opened, png);
      CHECK(has_object(opened, rows));
    }
}

TEST_CASE("a PNG whose image cannot be opened stays closed", "[containers][png]") {
  const Bytes stream = zlib_stream(text_like(33, 50'000));
  const auto stays_closed = [](const Bytes& png) { return !open_container(png).extent; };
  Bytes wrong_sum = png_of(stream, {8192});
  REQUIRE_FALSE(stays_closed(wrong_sum));
  wrong_sum[wrong_sum.size() - 12 - (kPadding + 12) - 1] ^= 1;  // of the last IDAT
  CHECK(stays_closed(wrong_sum));
  CHECK(stays_closed(png_of(ByteView(stream).subspan(2))));                // Apple's, without a zlib header
  CHECK(stays_closed(png_of(ByteView(stream).first(stream.size() / 2))));  // cut off
  CHECK(stays_closed(png_of(random_bytes(34, 20'000))));
  Bytes longer = stream;
  append(longer, Bytes(1000, 0));
  CHECK(stays_closed(png_of(longer)));
}

TEST_CASE("a PNG that is larger than memory opens, and is handed out as it is if it does not",
          "[containers][png]") {
  const Bytes rows = random_bytes(35, 10 << 20);
  const Bytes stream = zlib_stream(rows, 1);
  REQUIRE(stream.size() > (8 << 20));
  const Bytes png = png_of(stream, std::vector<std::size_t>(100, 8192));
  OpenedContainer opened = open_container(png);
  check_exact(opened, png);
  CHECK(opened.recipes == 1);

  const Bytes no_stream = png_of(rows);
  OpenedContainer as_it_is = open_container(no_stream);
  check_exact(as_it_is, no_stream);
}

TEST_CASE("a PDF opens to what its streams hold", "[containers][pdf]") {
  const Bytes page = text_like(36, 20'000), font = text_like(37, 90'000), small = text_like(38, 200);
  const Bytes photo = random_bytes(39, 30'000);
  Bytes pdf = pdf_start();
  const Bytes page_stream = zlib_stream(page);
  add_object(pdf, "/Filter /FlateDecode /Length " + std::to_string(page_stream.size()), page_stream);
  add_object(pdf, "/Filter [/FlateDecode] /Length 8 0 R", zlib_stream(font, 9), "\r\n");
  add_object(pdf, "/Filter /DCTDecode /Length 30000", photo);
  add_object(pdf, "/Filter /FlateDecode /Length 1", zlib_stream(small));
  add_object(pdf, "/Length 12", as_bytes("BT (Hi) Tj ET"));
  append(pdf, as_bytes("xref\n0 1\ntrailer\n<< /Size 1 >>\nstartxref\n0\n%%EOF\n"));
  OpenedContainer opened = open_container(pdf);
  check_exact(opened, pdf);
  CHECK(has_object(opened, page));
  CHECK(has_object(opened, font));
  CHECK_FALSE(has_object(opened, small));  // not worth it
}

TEST_CASE("a stream is found wherever the bytes that are looked at end", "[containers][pdf]") {
  const Bytes page = text_like(40, 9'000);
  const Bytes stream = zlib_stream(page);
  for (std::size_t shift = 0; shift < 40; ++shift) {
    Bytes pdf = pdf_start();
    append(pdf, Bytes((64 << 10) - pdf.size() - shift, '%'));
    append(pdf, as_bytes("\n>>\nstream\r\n"));
    append(pdf, stream);
    append(pdf, as_bytes("\nendstream\nstream\n"));
    OpenedContainer opened = open_container(pdf);
    check_exact(opened, pdf);
    CHECK(has_object(opened, page));
  }
}

TEST_CASE("a PDF in which no stream can be opened stays closed", "[containers][pdf]") {
  Bytes pdf = pdf_start();
  add_object(pdf, "/Length 12", as_bytes("BT (Hi) Tj ET"));
  CHECK_FALSE(open_container(pdf).extent);
  Bytes noise = {0x78, 0x9c};
  append(noise, random_bytes(41, 20'000));
  add_object(pdf, "/Filter /FlateDecode", noise);  // encrypted, say
  CHECK_FALSE(open_container(pdf).extent);
  append(pdf, random_bytes(42, 9 << 20));
  check_closed_or_exact(pdf);
}

TEST_CASE("a PDF of streams within streams does not take for ever", "[containers][pdf][thorough]") {
  // Each keyword promises a stream, and all of them go on in the same stored blocks, which have no end.
  Bytes unit(50, ' ');
  append(unit, as_bytes("\nstream\n\x78\x9c"));
  const auto block = static_cast<std::uint8_t>(unit.size());
  unit.insert(unit.end(), {0, block, 0, static_cast<std::uint8_t>(~block), 0xff});
  Bytes pdf = pdf_start();
  while (pdf.size() < (2 << 20)) append(pdf, unit);
  pdf.push_back(0xff);
  check_closed_or_exact(pdf);
}

TEST_CASE("a PNG or PDF that is cut or changed anywhere is closed or exact",
          "[containers][png][pdf][thorough]") {
  const Bytes stream = zlib_stream(text_like(43, 1700));
  REQUIRE(stream.size() > 550);
  Bytes pdf = pdf_start();
  add_object(pdf, "/Filter /FlateDecode", stream);
  append(pdf, Bytes(kPadding, ' '));
  for (const Bytes& whole : {png_of(stream, {0, 100, 200}), pdf}) {
    REQUIRE(open_container(whole).extent);
    for (std::size_t size = kPadding - 100; size < whole.size(); size += 7)
      check_closed_or_exact(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    for (std::size_t at = 0; at < whole.size() - std::min(whole.size(), kPadding); ++at) {
      Bytes changed = whole;
      changed[at] ^= static_cast<std::uint8_t>(1 + at % 255);
      check_closed_or_exact(changed);
    }
  }
}

TEST_CASE("damaged corrections of a PNG image give an error or the right bytes", "[recipe][png][thorough]") {
  const Bytes png = png_of(zlib_stream(text_like(44, 3000)), {0, 100, 200, 300});
  OpenedContainer opened = open_container(png);
  REQUIRE(opened.extent);
  for (auto& [object_id, object] : opened.objects.objects) {
    if (object.size() >= kPadding) continue;
    const Bytes before = object;
    for (std::size_t at = 0; at < before.size(); ++at)
      for (const std::uint8_t flip : {0x01, 0x02, 0x80, 0xff}) {
        object[at] ^= flip;
        const auto back = rebuilt(opened.objects, *opened.extent);
        if (back && *back != png) FAIL("other bytes came back");
        object = before;
      }
  }
}
