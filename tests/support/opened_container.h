// Opens containers as a backup does, and keeps their objects in memory: for tests of formats and recipes.
#pragma once

#include "formats/formats.h"
#include "lib/base/file.h"
#include "lib/container/content_source.h"
#include "lib/engine/container_opener.h"
#include "tests/support/coded_stream.h"
#include "tests/support/expect.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <memory>
#include <string>

namespace kin::testing {

// Objects by whatever id the test says: recipes can be forged.
class LooseObjects : public ObjectReader {
 public:
  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override {
    ++loads;
    const auto at = objects.find(id);
    if (at == objects.end()) return Error(ErrorCode::corrupt, "object " + id.short_hex() + " is missing");
    return std::make_shared<const Bytes>(at->second);
  }
  Result<bool> contains(const ObjectId& id) override { return objects.contains(id); }

  std::map<ObjectId, Bytes> objects;
  std::uint64_t loads = 0;
};

struct OpenedContainer {
  std::optional<Extent> extent;  // nothing: it stayed closed
  LooseObjects objects;
  std::size_t recipes = 0;
};

// One for all tests: they need its keys only.
inline BlockStore& any_store() {
  static FaultyDisk disk;
  static const std::unique_ptr<store::Repository> repository = [] {
    create_repository(disk);
    return reopen(disk);
  }();
  return *repository;
}

inline OpenedContainer open_container(Bytes bytes) {
  Segmenter segmenter(any_store());
  ContainerOpener opener(any_store(), formats::all(), segmenter);
  OpenedContainer out;
  MemorySource source(std::move(bytes));
  out.extent = value_of(opener.open(source, [&](NewObject object) {
    out.recipes += object.kind == ObjectKind::recipe;
    out.objects.objects.emplace(object.id, std::move(object.bytes));
    return true;
  }));
  return out;
}

inline Result<Bytes> rebuilt(ObjectReader& objects, const Extent& extent) {
  ContentSource source(objects, formats::all(), {extent});
  return read_to_end(source);
}

// What it opened to gives back the same bytes.
inline void check_exact(OpenedContainer& opened, const Bytes& bytes) {
  REQUIRE(opened.extent);
  REQUIRE(opened.extent->size == bytes.size());
  const Bytes back = value_of(rebuilt(opened.objects, *opened.extent));
  REQUIRE(back.size() == bytes.size());
  REQUIRE((back == bytes));
}

// Whatever was done to a container: it stays closed, or comes back the same.
inline void check_closed_or_exact(const Bytes& bytes) {
  OpenedContainer opened = open_container(bytes);
  if (!opened.extent) return;
  const Bytes back = value_of(rebuilt(opened.objects, *opened.extent));
  if (back != bytes) FAIL("other bytes came back");
}

// A member was stored as a file of this content would be.
inline bool has_object(const OpenedContainer& opened, ByteView content) {
  return opened.objects.objects.contains(any_store().id_of(content));
}

inline void write_bytes(const std::string& path, ByteView bytes) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  REQUIRE(fd);
  require_ok(write_all(fd.get(), bytes, path));
}

inline Bytes read_bytes(const std::string& path) { return value_of(read_file(path, std::size_t{1} << 30)); }

// A shell command in a directory; it has to succeed.
inline void run_in(const TempDir& directory, const std::string& command) {
  INFO(command);
  REQUIRE(std::system(("cd '" + directory.path() + "' && { " + command + "; } >/dev/null").c_str()) == 0);
}

inline bool has_tool(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null").c_str()) == 0;
}

}  // namespace kin::testing
