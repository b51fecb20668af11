#include "lib/sync/record.h"

#include "lib/sync/frame.h"
#include "lib/sync/item_merge.h"
#include "lib/sync/parcel.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin::testing {
namespace {

using sync::Item;
using sync::ItemType;
using sync::Piece;
using sync::Record;

Item message(int number) {
  Item item;
  item.folder = number % 2 == 0 ? "Lists" : "";
  item.name = "17000000" + std::to_string(number) + ".M1P2.host";
  item.object.bytes = hash(as_bytes(std::to_string(number)));
  item.size = 100;
  item.flags = static_cast<std::uint8_t>(number % 64);
  if (number % 5 == 0) item.words = {"Junk", "todo"};
  item.time = {1'700'000'000 + number, 0};
  return item;
}

std::vector<Record> some_records() {
  std::vector<Record> out;
  for (int i = 0; i < 30; ++i) {
    Record record;
    record.kind = static_cast<Record::Kind>(i % 6);
    record.stamp = {static_cast<sync::ReplicaId>(1 + i % 2), static_cast<std::uint64_t>(100 + i)};
    if (i % 7 == 0) record.replaces = {3, static_cast<std::uint64_t>(50 + i)};
    if (record.kind == Record::Kind::move) record.removed = {1, static_cast<std::uint64_t>(300 + i)};
    if (record.kind <= Record::Kind::place)
      record.reference = random_bytes(static_cast<std::uint64_t>(i), 5 + i % 3);
    const Item item = message(i);
    if (record.kind == Record::Kind::full || record.kind == Record::Kind::announce) record.item = item;
    if (record.kind == Record::Kind::update || record.kind == Record::Kind::move ||
        record.kind == Record::Kind::place) {
      record.item.flags = item.flags;
      record.item.words = item.words;
    }
    if (record.kind == Record::Kind::move || record.kind == Record::Kind::place)
      record.item.folder = item.folder;
    out.push_back(record);
  }
  return out;
}

void require_equal(const Record& a, const Record& b) {
  REQUIRE(a.kind == b.kind);
  REQUIRE(a.stamp == b.stamp);
  REQUIRE(a.replaces == b.replaces);
  REQUIRE(a.removed == b.removed);
  REQUIRE(a.reference == b.reference);
  WireWriter item_a, item_b;
  sync::encode_item(a.item, item_a);
  sync::encode_item(b.item, item_b);
  REQUIRE(item_a.bytes() == item_b.bytes());
}

TEST_CASE("records of every kind come back as they were", "[sync]") {
  const auto records = some_records();
  const auto again = value_of(sync::decode_records(sync::encode_records(records)));
  REQUIRE(again.size() == records.size());
  for (std::size_t i = 0; i < records.size(); ++i) require_equal(records[i], again[i]);
  CHECK(value_of(sync::decode_records(sync::encode_records({}))).empty());
}

TEST_CASE("damaged records are refused or are records", "[sync]") {
  for_each_damage(sync::encode_records(some_records()), [](const Bytes& damaged, const std::string&) {
    const auto read = sync::decode_records(damaged);
    if (read)
      for (const Record& record : *read) CHECK(record.reference.size() <= 16);
  });
}

TEST_CASE("items that would lead out of the store are refused", "[sync]") {
  const auto refused = [](const auto& change) {
    Item item = message(4);
    change(item);
    return !sync::check_item(item).has_value();
  };
  CHECK_FALSE(refused([](Item&) {}));
  for (const char* folder : {"..", "a/../b", "/etc", "a//b", "a/", "."})
    CHECK(refused([&](Item& item) { item.folder = folder; }));
  for (const char* name : {"..", "a/b", "."}) CHECK(refused([&](Item& item) { item.name = name; }));
  CHECK(refused([](Item& item) { item.name = std::string("a\0b", 3); }));
  CHECK(refused([](Item& item) { item.name = std::string(256, 'x'); }));
  CHECK(refused([](Item& item) { item.folder = std::string(5000, 'x'); }));
  CHECK(refused([](Item& item) { item.flags = 0x40; }));
  CHECK(refused([](Item& item) { item.words = {"b", "a"}; }));
  CHECK(refused([](Item& item) { item.words = {"a\nb"}; }));
  CHECK(refused([](Item& item) { item.type = static_cast<ItemType>(9); }));
  CHECK(refused([](Item& item) { item.target = "/etc"; }));
}

std::vector<Piece> some_pieces() {
  std::vector<Piece> out;
  for (int i = 0; i < 12; ++i) {
    Piece piece;
    piece.stamp = {1, static_cast<std::uint64_t>(10 + i)};
    piece.item = message(i);
    piece.content = text_like(static_cast<std::uint64_t>(i), 300);
    piece.item.size = piece.content.size();
    piece.item.object = sync::object_id(piece.content);
    piece.length = piece.content.size();
    piece.travels = piece.content;
    if (i == 5) {  // a part of a long one
      piece.item.size = 1000;
      piece.offset = 400;
    }
    if (i == 6) {
      Item file;
      file.type = ItemType::file;
      file.name = "file";
      file.size = piece.item.size;
      file.object = piece.item.object;
      piece.item = file;
      piece.form = Piece::Form::difference;
      piece.former = sync::object_id(as_bytes("former"));
      piece.travels = {3, 'a', 'b', 'c', 1, 1};
      piece.content.clear();
    }
    out.push_back(std::move(piece));
  }
  return out;
}

TEST_CASE("a parcel comes back with the prefix that it was made with, and not with another", "[sync]") {
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(12);
  const auto pieces = some_pieces();
  const Bytes prefix = text_like(3, 4000);
  const Bytes parcel = value_of(sync::encode_parcel(pieces, {{1, 2, 3, 4, 5}}, 1000, prefix, *codec));
  const auto head = value_of(sync::decode_parcel_head(parcel));
  CHECK(head.bases == std::vector<Bytes>{{1, 2, 3, 4, 5}});
  CHECK(head.window_bytes == 1000);
  const auto again = value_of(sync::decode_parcel(head, prefix, *codec, nullptr));
  REQUIRE(again.size() == pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(again[i].offset == pieces[i].offset);
    CHECK(again[i].length == pieces[i].length);
    CHECK(again[i].travels == pieces[i].travels);
    CHECK(again[i].form == pieces[i].form);
    if (pieces[i].form == Piece::Form::difference) {
      CHECK(is_former(again[i], pieces[i].former));
      continue;
    }
    CHECK(again[i].content == pieces[i].content);
    CHECK(again[i].item.object == pieces[i].item.object);
    CHECK(again[i].stamp == pieces[i].stamp);
  }
  Bytes other = prefix;
  for (std::size_t i = 0; i < other.size(); i += 3) other[i] ^= 1;
  CHECK(code_of(sync::decode_parcel(head, other, *codec, nullptr)) == ErrorCode::wrong_base);
}

TEST_CASE("a damaged parcel is refused, or its contents are what their hashes say", "[sync]") {
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1);
  const Bytes parcel = value_of(sync::encode_parcel(some_pieces(), {}, 0, {}, *codec));
  for_each_damage(parcel, [&](const Bytes& damaged, const std::string&) {
    const auto head = sync::decode_parcel_head(damaged);
    if (!head) return;
    const auto pieces = sync::decode_parcel(*head, {}, *codec, nullptr);
    if (!pieces) return;
    for (const Piece& piece : *pieces) {
      if (piece.is_whole() && piece.form != Piece::Form::difference)
        CHECK(piece.item.object == sync::object_id(piece.content));
      CHECK(sync::check_item(piece.item).has_value());
    }
  });
}

TEST_CASE("the pieces of a parcel have no more content than a parcel may", "[sync]") {
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1);
  const auto parcel_of = [&](std::size_t count) {
    std::vector<Piece> pieces(count);
    for (std::size_t i = 0; i < count; ++i) {  // "copy 4 MiB of yours"
      pieces[i].stamp = {1, i + 1};
      pieces[i].item.type = ItemType::file;
      pieces[i].item.name = "file";
      pieces[i].item.size = 1 << 30;
      pieces[i].length = 4 << 20;
      pieces[i].form = Piece::Form::difference;
      pieces[i].travels = {0, 0x80, 0x80, 0x80, 2, 0};
    }
    const Bytes parcel = value_of(sync::encode_parcel(pieces, {}, 0, {}, *codec));
    const auto head = value_of(sync::decode_parcel_head(parcel));
    return sync::decode_parcel(head, {}, *codec, nullptr).has_value();
  };
  CHECK(parcel_of(2));
  CHECK_FALSE(parcel_of(3));
}

TEST_CASE("a batch of records has no more texts than its records could use", "[sync]") {
  WireWriter out;
  out.varint(0);
  out.varint(1);          // one record
  out.u8(0);              // its kind
  out.varint(0);          // replicas
  out.varint(3'000'000);  // texts
  out.raw(Bytes(3'000'000));
  CHECK_FALSE(sync::decode_records(out.bytes()).has_value());
}

TEST_CASE("what a login shell prints before kin is shown as the reason", "[sync]") {
  sync::FrameReader reader;
  reader.add(as_bytes("Welcome to host\n"));
  const Error error = error_of(reader.next());
  CHECK(error.message().find("Welcome to host") != std::string::npos);
}

TEST_CASE("frames come out of a stream cut anywhere, and damage is an error", "[sync]") {
  sync::Hello hello;
  hello.replica = 5;
  hello.seen.add(5, 1, 10);
  hello.held.push_back({sync::object_id(as_bytes("x")), 100});
  Bytes stream = sync::encode_frame(sync::FrameType::hello, sync::encode_hello(hello));
  append(stream, sync::encode_frame(sync::FrameType::end, sync::encode_end({hello.seen, {1, 2}, 0, 3})));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    sync::FrameReader reader;
    reader.add(ByteView(stream).first(cut));
    int frames = 0;
    for (auto frame = value_of(reader.next()); frame; frame = value_of(reader.next())) ++frames;
    reader.add(ByteView(stream).subspan(cut));
    for (auto frame = value_of(reader.next()); frame; frame = value_of(reader.next())) ++frames;
    CHECK(frames == 2);
  }
  for_each_damage(stream, [](const Bytes& damaged, const std::string&) {
    sync::FrameReader reader;
    reader.add(damaged);
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
      const auto payload = (*frame)->payload;
      static_cast<void>(sync::decode_hello(payload).has_value());
      static_cast<void>(sync::decode_end(payload).has_value());
    }
  });
  const auto version = error_of(sync::decode_hello(as_bytes("kin\x09 and more")));
  CHECK(version.code() == ErrorCode::unsupported);
}

TEST_CASE("every pair of changed flags merges to what either wanted", "[sync]") {
  for (int base = 0; base < 64; base += 9)
    for (int ours = 0; ours < 64; ++ours)
      for (int theirs = 0; theirs < 64; ++theirs) {
        Item a = message(1), b = message(1), c = message(1);
        a.flags = static_cast<std::uint8_t>(base);
        b.flags = static_cast<std::uint8_t>(ours);
        c.flags = static_cast<std::uint8_t>(theirs);
        const auto merged = sync::merge(sync::ItemState(a), b, c).state;
        const auto other_way = sync::merge(sync::ItemState(a), c, b).state;
        REQUIRE(merged->flags == (base ^ ((ours ^ base) | (theirs ^ base))));
        REQUIRE(other_way->flags == merged->flags);
      }
}

}  // namespace
}  // namespace kin::testing
