// A repository on a FaultyDisk, and small ways to write into it: for tests of the store and of what stands on
// it.
#pragma once

#include "store/check.h"
#include "store/repository.h"
#include "tests/support/encryption.h"
#include "tests/support/expect.h"
#include "tests/support/faulty_backend.h"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kin::testing {

inline constexpr const char* kPassword = "correct horse";

enum class Mode { plain, encrypted };

// The test case runs once with each.
inline Mode any_mode() { return GENERATE(Mode::plain, Mode::encrypted); }

inline std::optional<std::string> password_of(Mode mode) {
  return mode == Mode::encrypted ? std::optional<std::string>(kPassword) : std::nullopt;
}

inline void create_repository(FaultyDisk& disk, Mode mode = Mode::plain) {
  require_ok(store::Repository::create(*disk.open(), password_of(mode), kCheapPassword));
}

// Without a cache directory the index is temporary. The index is not read: call refresh_index().
inline Result<std::unique_ptr<store::Repository>> open_repository(std::unique_ptr<store::Backend> backend,
                                                                  const std::string& cache_directory = "",
                                                                  std::size_t block_cache_bytes = 32 << 20) {
  store::OpenOptions options;
  options.password = []() -> Result<std::string> { return std::string(kPassword); };
  options.cache_directory = cache_directory;
  options.use_cache = !cache_directory.empty();
  options.block_cache_bytes = block_cache_bytes;
  return store::Repository::open(std::move(backend), options);
}

// Open, with the index read.
inline std::unique_ptr<store::Repository> reopen(FaultyDisk& disk, const std::string& cache_directory = "",
                                                 std::size_t block_cache_bytes = 32 << 20) {
  auto repository = value_of(open_repository(disk.open(), cache_directory, block_cache_bytes));
  require_ok(repository->refresh_index());
  return repository;
}

// The contents as one block, not compressed, so that its size is known.
inline EncodedBlock plain_block(const BlockStore& store, const std::vector<Bytes>& contents,
                                ObjectKind kind = ObjectKind::data) {
  EncodedBlock out;
  out.header.codec = static_cast<std::uint8_t>(CodecId::plain);
  for (const Bytes& content : contents) {
    out.header.objects.push_back({store.id_of(content), kind, content.size(), {}});
    append(out.payload, content);
  }
  out.header.content_size = out.payload.size();
  return out;
}

// One object that is stored as its difference from a base, whose content is given.
inline EncodedBlock delta_block(const BlockStore& store, const ObjectId& base, ByteView base_content,
                                const Bytes& content) {
  EncodedBlock out;
  out.header.codec = static_cast<std::uint8_t>(CodecId::zstd);
  out.header.base = base;
  out.header.content_size = content.size();
  out.header.objects = {{store.id_of(content), ObjectKind::data, content.size(), {}}};
  out.payload = value_of(find_codec(out.header.codec)->make(3)->encode(base_content, content));
  return out;
}

// As the engine does it: claims, and appends if the object is new.
inline Result<ObjectId> store_object(BlockStore& store, const Bytes& content,
                                     ObjectKind kind = ObjectKind::data) {
  const ObjectId id = store.id_of(content);
  KIN_TRY_ASSIGN(const bool is_new, store.claim(id));
  if (is_new) KIN_TRY(store.append(plain_block(store, {content}, kind)));
  return id;
}

inline bool loads(ObjectReader& reader, const ObjectId& id, ByteView content) {
  const auto loaded = reader.load(id);
  return loaded && equal(**loaded, content);
}

// By a check of all that is stored.
inline void require_sound(FaultyDisk& disk) {
  const auto repository = reopen(disk);
  store::CheckObserver observer;
  observer.on_problem = [&](const std::string& problem) { FAIL_CHECK(problem); };
  observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
  value_of(store::check(*repository, {}, {store::ReadSubset::Kind::all}, observer, {}));
}

inline Snapshot snapshot_named(const std::string& host) {
  Snapshot out;
  out.time = {1'700'000'000, 0};
  out.host = host;
  return out;
}

}  // namespace kin::testing
