#include "lib/sync/opened_content.h"

#include "formats/formats.h"
#include "lib/sync/parcel.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin::testing {
namespace {

std::string base64(ByteView bytes, std::size_t columns) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < left ? bytes[at + i] : 0);
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= left ? kLetters[bits >> (18 - 6 * i) & 63] : '=';
      if (++column % columns == 0) out += '\n';
    }
  }
  return out.ends_with('\n') ? out : out + '\n';
}

Bytes message(const Bytes& attachment, std::size_t columns, const std::string& subject) {
  const std::string text =
      "From: a@example.org\nTo: b@example.org\nSubject: " + subject +
      "\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"part\"\n\n--part\n"
      "Content-Type: text/plain\n\nThe file.\n--part\nContent-Type: application/octet-stream\n"
      "Content-Transfer-Encoding: base64\n\n" +
      base64(attachment, columns) + "--part--\n";
  return Bytes(text.begin(), text.end());
}

TEST_CASE("a message with an attachment is opened, and closed to what it was", "[sync]") {
  for (const std::size_t columns : {60, 72, 76}) {
    const Bytes content = message(random_bytes(1, 5000), columns, "columns");
    const auto opened = sync::open_content(formats::all(), content);
    REQUIRE(opened);
    CHECK(opened->size() < content.size());
    CHECK(value_of(sync::close_content(formats::all(), *opened, content.size())) == content);
    CHECK(code_of(sync::close_content(formats::all(), *opened, content.size() - 1)) == ErrorCode::corrupt);
  }
  CHECK_FALSE(sync::open_content(formats::all(), text_like(1, 3000)));
  CHECK_FALSE(sync::open_content(formats::all(), {}));
}

TEST_CASE("a damaged opened message is an error, or another message of the same length", "[sync]") {
  const Bytes content = message(random_bytes(2, 1500), 76, "damage");
  const auto opened = sync::open_content(formats::all(), content);
  REQUIRE(opened);
  for_each_damage(*opened, [&](const Bytes& damaged, const std::string&) {
    const auto closed = sync::close_content(formats::all(), damaged, content.size());
    if (closed) CHECK(closed->size() == content.size());
  });
}

TEST_CASE("an attachment that is like one that the other end has costs little", "[sync]") {
  const Bytes attachment = random_bytes(3, 30'000);
  const Bytes before = message(attachment, 60, "first");
  sync::Piece piece;
  piece.stamp = {1, 1};
  Bytes later = attachment;
  later.insert(later.begin(), '!');  // all of its base64 is another one
  piece.content = message(later, 76, "again");
  piece.item.size = piece.content.size();
  piece.item.object = sync::object_id(piece.content);
  piece.length = piece.content.size();
  piece.travels = piece.content;
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(12);
  const Bytes closed = value_of(sync::encode_parcel({piece}, {}, 0, before, *codec));
  piece.form = sync::Piece::Form::opened;
  piece.travels = *sync::open_content(formats::all(), piece.content);
  const Bytes prefix = *sync::open_content(formats::all(), before);
  const Bytes parcel = value_of(sync::encode_parcel({piece}, {}, 0, prefix, *codec));
  CHECK(closed.size() > 20'000);
  CHECK(parcel.size() < 500);
  const auto head = value_of(sync::decode_parcel_head(parcel));
  const auto again = value_of(sync::decode_parcel(head, prefix, *codec, &formats::all()));
  REQUIRE(again.size() == 1);
  CHECK(again[0].content == piece.content);
  CHECK(code_of(sync::decode_parcel(head, prefix, *codec, nullptr)) == ErrorCode::wrong_base);
}

}  // namespace
}  // namespace kin::testing
