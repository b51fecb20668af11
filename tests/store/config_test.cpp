#include "store/config.h"

#include "tests/support/damage.h"
#include "tests/support/encryption.h"
#include "tests/support/expect.h"

#include <catch2/catch.hpp>

namespace kin::store {
namespace {

using testing::code_of;
using testing::error_of;
using testing::kModes;
using testing::value_of;

// Where the fields lie: magic (8), version, read features, write features, id (32), encryption.
constexpr std::size_t kVersionAt = 8, kReadFeaturesAt = 12, kWriteFeaturesAt = 16, kEncryptionAt = 52;

Config sample(Encryption mode, const Key& master_key) {
  Config config;
  config.repository_id = hash(as_bytes("repository"));
  config.encryption = mode;
  if (mode == Encryption::none) config.plain_master_key = master_key;
  config.created = {1'700'000'000, 123};
  return config;
}

// All that opening a repository does with its config.
Result<Config> read(ByteView file, const Key& master_key) {
  KIN_TRY_ASSIGN(Config config, decode_config(file));
  const Key key = config.plain_master_key ? *config.plain_master_key : master_key;
  KIN_TRY(verify_config(file, key, config));
  return config;
}

}  // namespace

TEST_CASE("a config comes back with every field", "[config]") {
  for (const Encryption mode : kModes) {
    const Key master_key = random_key();
    const Config config = sample(mode, master_key);
    const Config got = value_of(read(encode_config(config, master_key), master_key));
    CHECK(got.version == kFormatVersion);
    CHECK(got.repository_id == config.repository_id);
    CHECK(got.encryption == mode);
    CHECK(got.plain_master_key == config.plain_master_key);
    CHECK(got.created == config.created);
  }
}

TEST_CASE("a config has the part of parity, and is as before without", "[config]") {
  const Key master_key = random_key();
  Config config = sample(Encryption::none, master_key);
  CHECK(value_of(read(encode_config(config, master_key), master_key)).parity_percent == 0);
  const std::size_t size = encode_config(config, master_key).size();
  config.parity_percent = 5;
  CHECK(value_of(read(encode_config(config, master_key), master_key)).parity_percent == 5);
  CHECK(encode_config(config, master_key).size() == size + 1);
  config.parity_percent = 101;
  CHECK(code_of(read(encode_config(config, master_key), master_key)) == ErrorCode::corrupt);
}

TEST_CASE("a config has the access, and is as before where all is permitted", "[config]") {
  const Key master_key = random_key();
  Config config = sample(Encryption::none, master_key);
  const std::size_t size = encode_config(config, master_key).size();
  for (const Access access : {Access::append_only, Access::read_only})
    for (const unsigned percent : {0U, 5U}) {
      config.access = access;
      config.parity_percent = percent;
      const Config got = value_of(read(encode_config(config, master_key), master_key));
      CHECK(got.access == access);
      CHECK(got.parity_percent == percent);
      CHECK(encode_config(config, master_key).size() == size + 2);
    }
  config.parity_percent = 0;
  config.access = static_cast<Access>(3);
  CHECK(code_of(read(encode_config(config, master_key), master_key)) == ErrorCode::corrupt);
  config.access = Access::read_write;
  CHECK(encode_config(config, master_key).size() == size);
}

TEST_CASE("what is 0 at the end of a config is not written, and refused if it is", "[config]") {
  const Key master_key = random_key();
  const Config config = sample(Encryption::none, master_key);
  const Bytes file = encode_config(config, master_key);
  const std::size_t open_bytes = 8 + 4 + 4 + 4 + 32 + 1 + 32;
  const Sealer sealer(Encryption::none, sealing_key(master_key));
  // With more fields than it was written with.
  const auto with = [&](const Bytes& fields) {
    Bytes out(file.begin(), file.begin() + open_bytes);
    Nonce nonce{};
    std::copy_n(file.begin() + open_bytes, nonce.size(), nonce.begin());
    Bytes plain = value_of(sealer.open(nonce, out, ByteView(file).subspan(open_bytes + nonce.size())));
    append(plain, fields);
    const Bytes sealed = sealer.seal(nonce, out, plain);
    append(out, nonce);
    append(out, sealed);
    return out;
  };
  CHECK(value_of(read(with({}), master_key)).access == Access::read_write);
  CHECK(value_of(read(with({0, 1}), master_key)).access == Access::append_only);
  CHECK(value_of(read(with({7, 2}), master_key)).access == Access::read_only);
  for (const Bytes& fields : {Bytes{0}, Bytes{0, 0}, Bytes{5, 0}, Bytes{0, 1, 0}, Bytes{0, 3}, Bytes{101, 1}})
    CHECK(code_of(read(with(fields), master_key)) == ErrorCode::corrupt);
}

TEST_CASE("an encrypted config does not hold the master key", "[config]") {
  const Key master_key = random_key();
  const std::string file = hex(encode_config(sample(Encryption::xchacha20_poly1305, master_key), master_key));
  CHECK(file.find(hex(master_key)) == std::string::npos);
  CHECK(file.find(hex(sealing_key(master_key))) == std::string::npos);
}

TEST_CASE("the start of a config is part of the format", "[config]") {
  const Key master_key = random_key();
  const Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
  CHECK(as_text(ByteView(file).first(8)) == "KINREPO1");
  CHECK(equal(ByteView(file).subspan(kVersionAt, 12), Bytes{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(equal(ByteView(file).subspan(20, 32), hash(as_bytes("repository"))));
  CHECK(file[kEncryptionAt] == 0);
  CHECK(equal(ByteView(file).subspan(53, 32), master_key));
}

TEST_CASE("no byte of a config can change or be missing without notice", "[config]") {
  for (const Encryption mode : kModes) {
    const Key master_key = random_key();
    testing::for_each_damage(encode_config(sample(mode, master_key), master_key),
                             [&](const Bytes& damaged, const std::string& what) {
                               INFO(what);
                               CHECK_FALSE(read(damaged, master_key));
                             });
  }
}

TEST_CASE("a config with bytes after its end is corrupt", "[config]") {
  const Key master_key = random_key();
  Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
  file.push_back(0);
  CHECK(code_of(read(file, master_key)) == ErrorCode::corrupt);
}

TEST_CASE("a config of a newer format is unsupported, and says which", "[config]") {
  const Key master_key = random_key();
  Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
  file[kVersionAt] = 7;
  const Error error = error_of(decode_config(file));
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK_THAT(error.message(), Catch::Contains("format 7"));
  file[kVersionAt] = 0;
  CHECK(code_of(decode_config(file)) == ErrorCode::corrupt);
}

TEST_CASE("features that a reader must know and this one does not are unsupported", "[config]") {
  const Key master_key = random_key();
  for (const std::size_t at : {kReadFeaturesAt, kReadFeaturesAt + 3}) {
    Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
    file[at] = 0x80;
    CHECK(code_of(decode_config(file)) == ErrorCode::unsupported);
  }
}

TEST_CASE("features that only a writer must know leave the repository readable", "[config]") {
  const Key master_key = random_key();
  for (const std::size_t at : {kWriteFeaturesAt, kWriteFeaturesAt + 3}) {
    Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
    CHECK(value_of(decode_config(file)).writable);
    file[at] = 0x80;
    CHECK_FALSE(value_of(decode_config(file)).writable);
  }
}

TEST_CASE(
    "a kind of encryption that there is not yet is unsupported, and a file that is no config is corrupt",
    "[config]") {
  const Key master_key = random_key();
  Bytes file = encode_config(sample(Encryption::none, master_key), master_key);
  file[kEncryptionAt] = 2;
  CHECK(code_of(decode_config(file)) == ErrorCode::unsupported);
  CHECK(code_of(decode_config({})) == ErrorCode::corrupt);
  CHECK(code_of(decode_config(as_bytes("[repository]\nversion = 1\n"))) == ErrorCode::corrupt);
}

TEST_CASE("the wrong master key does not pass", "[config]") {
  const Key master_key = random_key();
  const Bytes file = encode_config(sample(Encryption::xchacha20_poly1305, master_key), master_key);
  CHECK(code_of(read(file, random_key())) == ErrorCode::corrupt);
}

TEST_CASE("every use of the master key has its own key", "[config]") {
  const Key master_key{};
  CHECK(sealing_key(master_key) == derive_key(master_key, "kin seal"));
  CHECK(object_id_key(master_key) == derive_key(master_key, "kin object id"));
  CHECK(segment_key(master_key) == derive_key(master_key, "kin segment"));
}

}  // namespace kin::store
