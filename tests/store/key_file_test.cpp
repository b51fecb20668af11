#include "store/key_file.h"

#include "lib/base/wire.h"
#include "tests/support/damage.h"
#include "tests/support/encryption.h"
#include "tests/support/expect.h"
#include "tests/support/faulty_backend.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>

namespace kin::store {
namespace {

using testing::code_of;
using testing::error_of;
using testing::FaultyDisk;
using testing::kCheapPassword;
using testing::Operation;
using testing::value_of;

KeyInfo info() { return {"", false, "user\n", "host", {1'700'000'000, 0}}; }

Bytes key_file(const Key& master_key, std::string_view password) {
  return value_of(encode_key_file(master_key, password, info(), kCheapPassword));
}

std::string put_key(FaultyDisk& disk, const Bytes& file) {
  const std::string name = hex(hash(file));
  disk.write({FileKind::key, name}, file);
  return name;
}

}  // namespace

TEST_CASE("a key file opens with its password and no other", "[key_file]") {
  const Key master_key = random_key();
  for (const std::string& password :
       {std::string("secret"), std::string(""), std::string(1000, 'x'), std::string("a\0b", 3)}) {
    const Bytes file = key_file(master_key, password);
    CHECK(value_of(open_key_file(file, password)) == master_key);
    CHECK(code_of(open_key_file(file, password + "x")) == ErrorCode::wrong_password);
    CHECK(code_of(open_key_file(file, "wrong")) == ErrorCode::wrong_password);
  }
}

TEST_CASE("a key file says in the open who made it, and does not hold the key", "[key_file]") {
  const Key master_key = random_key();
  const Bytes file = key_file(master_key, "secret");
  const KeyInfo got = value_of(read_key_info(file));
  CHECK(got.user == "user\n");
  CHECK(got.host == "host");
  CHECK(got.created == info().created);
  CHECK(hex(file).find(hex(master_key)) == std::string::npos);
  CHECK(hex(file).find(hex(as_bytes("secret"))) == std::string::npos);
  CHECK(key_file(master_key, "secret") != file);  // salt and nonce are new each time
}

TEST_CASE("the start of a key file is part of the format", "[key_file]") {
  const Bytes file = key_file(random_key(), "secret");
  CHECK(as_text(ByteView(file).first(8)) == "KINKEY01");
  CHECK(equal(ByteView(file).subspan(8, 4), Bytes{1, 1, 0x80, 0x40}));  // argon2id, 1 pass, 8192 bytes
  CHECK(file.size() == 12 + 16 + 5 + 6 + 5 + 24 + 32 + 16);
}

TEST_CASE("a damaged key file never gives a key", "[key_file]") {
  testing::for_each_damage(key_file(random_key(), "secret"),
                           [](const Bytes& damaged, const std::string& what) {
                             INFO(what);
                             CHECK_FALSE(open_key_file(damaged, "secret"));
                           });
}

TEST_CASE("a key file cut short or too long is corrupt, and one of a newer kin is unsupported",
          "[key_file]") {
  const Bytes file = key_file(random_key(), "secret");
  testing::for_each_cut(file, [](const Bytes& cut, const std::string& what) {
    INFO(what);
    CHECK(code_of(read_key_info(cut)) == (cut.size() == 8 ? ErrorCode::unsupported : ErrorCode::corrupt));
  });
  Bytes longer = file;
  longer.push_back(0);
  CHECK(code_of(read_key_info(longer)) == ErrorCode::corrupt);
  Bytes newer = file;
  newer[8] = 2;
  CHECK(code_of(read_key_info(newer)) == ErrorCode::unsupported);
  CHECK(code_of(open_key_file(newer, "secret")) == ErrorCode::unsupported);
}

TEST_CASE("a key file cannot make us compute for hours or take all memory", "[key_file]") {
  for (const PasswordCost& cost : {PasswordCost{1'000'000, 8192}, PasswordCost{1, std::uint64_t{1} << 50}}) {
    WireWriter out;
    out.raw(as_bytes("KINKEY01"));
    out.u8(1);
    out.varint(cost.operations);
    out.varint(cost.memory_bytes);
    out.raw(Bytes(16));
    out.signed_varint(0);
    out.text("");
    out.text("");
    out.raw(Bytes(24 + 32 + 16));
    CHECK(code_of(open_key_file(out.bytes(), "x")) == ErrorCode::corrupt);
  }
}

TEST_CASE("any key of several opens, and its name is told", "[key_file]") {
  FaultyDisk disk;
  const Key master_key = random_key();
  const std::string first = put_key(disk, key_file(master_key, "first"));
  const std::string second = put_key(disk, key_file(master_key, "second"));
  const auto backend = disk.open();
  CHECK(value_of(open_any_key(*backend, "first")).name == first);
  CHECK(value_of(open_any_key(*backend, "second")).name == second);
  CHECK(value_of(open_any_key(*backend, "second")).master_key == master_key);
  CHECK(code_of(open_any_key(*backend, "third")) == ErrorCode::wrong_password);
  CHECK(value_of(list_keys(*backend, [](const Error&) { FAIL("damage"); })).size() == 2);
}

TEST_CASE("a damaged key does not keep the others from opening", "[key_file]") {
  FaultyDisk disk;
  const Key master_key = random_key();
  for (const char* password : {"a", "b", "c", "d"}) put_key(disk, key_file(master_key, password));
  const std::string damaged = put_key(disk, Bytes(100, 'x'));
  const auto backend = disk.open();
  for (const char* password : {"a", "b", "c", "d"})
    CHECK(value_of(open_any_key(*backend, password)).master_key == master_key);
  const Error error = error_of(open_any_key(*backend, "e"));
  CHECK(error.code() == ErrorCode::wrong_password);
  CHECK_THAT(error.message(), Catch::Contains(damaged.substr(0, 8)));
}

TEST_CASE("a key of another repository does not keep the others from opening, and is named", "[key_file]") {
  const Key ours = random_key();
  const auto fits = [&](const Key& key) -> Result<void> {
    if (key == ours) return {};
    return Error(ErrorCode::corrupt, "config: checksum mismatch");
  };
  FaultyDisk disk;
  std::vector<std::string> foreign;
  for (int i = 0; i < 3; ++i) foreign.push_back(put_key(disk, key_file(random_key(), "same")));
  const Error error = error_of(open_any_key(*disk.open(), "same", fits));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains("config: checksum mismatch"));
  for (const std::string& name : foreign) CHECK_THAT(error.message(), Catch::Contains(name.substr(0, 8)));

  const std::string own = put_key(disk, key_file(ours, "same"));
  const OpenedKey opened = value_of(open_any_key(*disk.open(), "same", fits));
  CHECK(opened.name == own);
  CHECK(opened.master_key == ours);
  // Those that are tried before it, whichever they are.
  for (const std::string& name : opened.foreign)
    CHECK(std::find(foreign.begin(), foreign.end(), name) != foreign.end());
  CHECK(code_of(open_any_key(*disk.open(), "other", fits)) == ErrorCode::wrong_password);
}

TEST_CASE("a damaged key is named, and the others are listed", "[key_file]") {
  FaultyDisk disk;
  const std::string sound = put_key(disk, key_file(random_key(), "a"));
  const std::string rubbish = put_key(disk, Bytes(100, 'x'));
  const FileName flipped{FileKind::key, put_key(disk, key_file(random_key(), "b"))};
  const FileName cut{FileKind::key, put_key(disk, key_file(random_key(), "c"))};
  disk.flip(flipped, disk.file(flipped).size() - 1);  // in the sealed part, which nobody can read
  disk.cut(cut, 3);
  std::vector<std::string> damages;
  const std::vector<KeyInfo> keys =
      value_of(list_keys(*disk.open(), [&](const Error& error) { damages.push_back(error.message()); }));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].name == sound);
  REQUIRE(damages.size() == 3);
  for (const std::string& name : {rubbish, flipped.name, cut.name})
    CHECK(std::count_if(damages.begin(), damages.end(), [&](const std::string& message) {
            return message.find("key " + name.substr(0, 8)) != std::string::npos;
          }) == 1);
}

TEST_CASE("a key that a newer kin made is listed by its name, and is no damage", "[key_file]") {
  FaultyDisk disk;
  put_key(disk, key_file(random_key(), "a"));
  Bytes file = key_file(random_key(), "b");
  file[8] = 2;
  const std::string newer = put_key(disk, file);
  const std::vector<KeyInfo> keys = value_of(list_keys(*disk.open(), [](const Error&) { FAIL("damage"); }));
  REQUIRE(keys.size() == 2);
  for (const KeyInfo& key : keys) CHECK(key.newer == (key.name == newer));
}

TEST_CASE("all keys being damaged is told as damage, and a damaged key costs no time", "[key_file]") {
  FaultyDisk disk;
  std::vector<std::string> names;
  for (const char* password : {"a", "b"}) {
    // Damage that asks for twenty passes over a GiB is found by the name, not by doing that.
    const FileName key{FileKind::key, put_key(disk, key_file(random_key(), password))};
    const Bytes file = disk.file(key);
    WireWriter costly;
    costly.raw(ByteView(file).first(9));
    costly.varint(20);
    costly.varint(1 << 30);
    costly.raw(ByteView(file).subspan(12));
    REQUIRE(read_key_info(costly.bytes()).has_value());
    disk.damage(key, costly.take());
    names.push_back(key.name);
  }
  const auto start = std::chrono::steady_clock::now();
  const Error error = error_of(open_any_key(*disk.open(), "a"));
  CHECK(error.code() == ErrorCode::corrupt);
  for (const std::string& name : names) CHECK_THAT(error.message(), Catch::Contains(name.substr(0, 8)));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a key that cannot be read does not keep the others from opening", "[key_file]") {
  FaultyDisk disk;
  const Key master_key = random_key();
  put_key(disk, key_file(master_key, "same"));
  put_key(disk, key_file(master_key, "same"));
  const auto backend = disk.open();
  disk.fail(Operation::get);
  CHECK(value_of(open_any_key(*backend, "same")).master_key == master_key);
}

TEST_CASE("the only key being damaged is told as damage, not as a wrong password", "[key_file]") {
  FaultyDisk disk;
  const std::string name = put_key(disk, Bytes(100, 'x'));
  const Error error = error_of(open_any_key(*disk.open(), "secret"));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains(name.substr(0, 8)));
}

TEST_CASE("an encrypted repository without any key says that its keys are gone", "[key_file]") {
  FaultyDisk disk;
  CHECK(code_of(open_any_key(*disk.open(), "secret")) == ErrorCode::corrupt);
}

TEST_CASE("a key that was added is durable and opens", "[key_file]") {
  FaultyDisk disk;
  const Key master_key = random_key();
  const std::string name = value_of(add_key(*disk.open(), master_key, "secret", kCheapPassword));
  disk.crash();
  disk.restart();
  const auto backend = disk.open();
  CHECK(value_of(open_any_key(*backend, "secret")).master_key == master_key);
  const std::vector<KeyInfo> keys = value_of(list_keys(*backend, [](const Error&) { FAIL("damage"); }));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].name == name);
  CHECK(keys[0].created.seconds > 1'700'000'000);
}

TEST_CASE("adding a key fails if it cannot be stored, or does not read back as it was written",
          "[key_file]") {
  FaultyDisk disk;
  const auto backend = disk.open();
  disk.fail(Operation::put, 1, ErrorCode::no_space);
  CHECK(code_of(add_key(*backend, random_key(), "secret", kCheapPassword)) == ErrorCode::no_space);
  disk.fail(Operation::sync);
  CHECK(code_of(add_key(*backend, random_key(), "secret", kCheapPassword)) == ErrorCode::io);
  disk.fail(Operation::get);
  CHECK(code_of(add_key(*backend, random_key(), "secret", kCheapPassword)) == ErrorCode::io);
}

}  // namespace kin::store
