#include "lib/object/snapshot.h"

#include "lib/base/wire.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>

namespace kin {
namespace {

using testing::code_of;
using testing::value_of;

Snapshot full_snapshot() {
  Snapshot out;
  out.time = {1794817800, 123456789};
  out.host = "höst";
  out.user = "user";
  out.uid = std::numeric_limits<std::uint32_t>::max();
  out.gid = 100;
  out.paths = {"/home", "/with \xff bytes", ""};
  out.tags = {"a", "b"};
  out.parent = SnapshotId{hash(as_bytes("parent"))};
  out.original = SnapshotId{hash(as_bytes("original"))};
  out.program_version = "kin 0.1";
  out.tree = ObjectId{hash(as_bytes("tree"))};
  out.summary = {1, 2, 3, 4, 5, 6, std::numeric_limits<std::uint64_t>::max(), 8, 9, 10, 11, 12};
  out.seconds = 61.25;
  return out;
}

// Snapshot has no ==; its parts are compared one by one, so that a new one is not forgotten here without
// notice.
void check_equal(const Snapshot& a, const Snapshot& b) {
  CHECK(a.time == b.time);
  CHECK(a.host == b.host);
  CHECK(a.user == b.user);
  CHECK(a.uid == b.uid);
  CHECK(a.gid == b.gid);
  CHECK(a.paths == b.paths);
  CHECK(a.tags == b.tags);
  CHECK(a.parent == b.parent);
  CHECK(a.original == b.original);
  CHECK(a.program_version == b.program_version);
  CHECK(a.tree == b.tree);
  const auto counts = [](const SnapshotSummary& s) {
    return std::vector<std::uint64_t>{
        s.files_new, s.files_changed, s.files_unmodified, s.directories, s.others,       s.files,
        s.bytes,     s.bytes_read,    s.objects_added,    s.bytes_added, s.bytes_stored, s.skipped};
  };
  CHECK(counts(a.summary) == counts(b.summary));
  CHECK(a.seconds == b.seconds);
}

}  // namespace

TEST_CASE("a snapshot comes back with every field", "[snapshot]") {
  check_equal(value_of(decode_snapshot(encode_snapshot(full_snapshot()))), full_snapshot());
  check_equal(value_of(decode_snapshot(encode_snapshot(Snapshot{}))), Snapshot{});
}

TEST_CASE("a snapshot that is copied keeps its duration to the millisecond", "[snapshot]") {
  int wrong = 0;
  for (int milliseconds = 0; milliseconds < 20'000; ++milliseconds) {
    Snapshot snapshot;
    snapshot.seconds = milliseconds / 1000.0;
    const auto copy = decode_snapshot(encode_snapshot(snapshot));
    wrong += !copy || copy->seconds != snapshot.seconds;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a snapshot's bytes are part of the format", "[snapshot]") {
  Snapshot snapshot;
  snapshot.time = {-1, 5};
  snapshot.host = "h";
  snapshot.uid = 300;
  snapshot.paths = {"/a"};
  snapshot.parent = SnapshotId{};
  snapshot.program_version = "v";
  snapshot.summary.files_new = 7;
  snapshot.summary.skipped = 8;
  snapshot.seconds = 0.5;
  WireWriter out;
  out.raw(Bytes{1, 1, 5, 1, 'h', 0, 0xac, 2, 0, 1, 2, '/', 'a', 0, 1});
  out.raw(Bytes(32));  // parent
  out.raw(Bytes{0, 1, 'v'});
  out.raw(Bytes(32));  // tree
  out.raw(Bytes{7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0xf4, 3});
  CHECK(encode_snapshot(snapshot) == out.bytes());
}

TEST_CASE("a snapshot cut at any length is corrupt", "[snapshot]") {
  testing::for_each_cut(encode_snapshot(full_snapshot()), [](const Bytes& cut, const std::string& what) {
    INFO(what);
    CHECK(code_of(decode_snapshot(cut)) == ErrorCode::corrupt);
  });
}

TEST_CASE("a snapshot with bytes after its end is corrupt", "[snapshot]") {
  Bytes bytes = encode_snapshot(full_snapshot());
  bytes.push_back(0);
  CHECK(code_of(decode_snapshot(bytes)) == ErrorCode::corrupt);
}

TEST_CASE("a damaged snapshot is refused or is a snapshot that can be written again", "[snapshot]") {
  std::size_t refused = 0;
  testing::for_each_flip(encode_snapshot(full_snapshot()),
                         [&](const Bytes& damaged, const std::string& what) {
                           const auto snapshot = decode_snapshot(damaged);
                           if (!snapshot) ++refused;
                           if (snapshot && !decode_snapshot(encode_snapshot(*snapshot))) FAIL(what);
                         });
  CHECK(refused > 50);
}

TEST_CASE("a snapshot of a newer version is unsupported, not corrupt", "[snapshot]") {
  Bytes bytes = encode_snapshot(full_snapshot());
  bytes[0] = 2;
  CHECK(code_of(decode_snapshot(bytes)) == ErrorCode::unsupported);
  bytes[0] = 255;
  CHECK(code_of(decode_snapshot(bytes)) == ErrorCode::unsupported);
  bytes[0] = 0;
  CHECK(code_of(decode_snapshot(bytes)) == ErrorCode::corrupt);
}

TEST_CASE("a snapshot's numbers too large for their field are refused, not cut off", "[snapshot]") {
  const auto with = [](std::uint64_t nanoseconds, std::uint64_t uid, std::uint64_t gid) {
    WireWriter out;
    out.u8(1);
    out.signed_varint(0);
    out.varint(nanoseconds);
    out.text("");
    out.text("");
    out.varint(uid);
    out.varint(gid);
    out.raw(Bytes{0, 0, 0, 0, 0});  // no paths, tags, parent, original, program
    out.raw(Bytes(32));
    out.raw(Bytes(13));
    return decode_snapshot(out.bytes()).has_value();
  };
  constexpr std::uint64_t kTooLarge = (std::uint64_t{1} << 32) | 5;
  CHECK(with(999'999'999, 5, 5));
  CHECK_FALSE(with(1'000'000'000, 5, 5));
  CHECK_FALSE(with(kTooLarge, 5, 5));
  CHECK_FALSE(with(5, kTooLarge, 5));
  CHECK_FALSE(with(5, 5, kTooLarge));
}

TEST_CASE("an object id reads back from hexadecimal and from nothing else", "[object_id]") {
  const ObjectId id{hash(as_bytes("x"))};
  CHECK(ObjectId::from_hex(id.hex()) == id);
  CHECK(id.short_hex() == id.hex().substr(0, 8));
  CHECK(ObjectId::from_hex("") == std::nullopt);
  CHECK(ObjectId::from_hex(id.hex().substr(1)) == std::nullopt);
  CHECK(ObjectId::from_hex(id.hex() + "00") == std::nullopt);
  CHECK(ObjectId::from_hex("g" + id.hex().substr(1)) == std::nullopt);
}

}  // namespace kin
