// Backend: named, immutable files; knows nothing of objects. Implementations: local directory, memory
// (tests), and in tests a faulty one.
//
// A file is written whole by put() and is then visible to this Backend. It is durable, and visible to others,
// after the next sync() and not before: a crash in between loses it whole, never in part. So: put packs,
// sync, put index, sync, put snapshot, sync. Thread-safe.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kin::store {

// A forgotten snapshot is the file that it was, in another place, until its content is removed.
enum class FileKind { config, key, pack, index, snapshot, forgotten, mark, parity };
inline constexpr FileKind kAllFileKinds[] = {FileKind::config, FileKind::key,      FileKind::pack,
                                             FileKind::index,  FileKind::snapshot, FileKind::forgotten,
                                             FileKind::mark,   FileKind::parity};

std::string_view name_of(FileKind kind);  // "pack"

struct FileName {
  FileKind kind;
  std::string name;  // hexadecimal; empty for the config, of which there is one

  std::string text() const;  // for messages: "pack 77c0a1b2"
  auto operator<=>(const FileName&) const = default;
};

inline FileName config_name() { return {FileKind::config, ""}; }

struct FileInfo {
  std::string name;
  std::uint64_t size = 0;
};

// A file that is written piece by piece and gets its name, which is a hash of it, when it is complete. Until
// then nobody else sees it, and what is not put is gone with it. What fails has changed nothing, and may be
// tried again. One thread at a time; must not outlive its Backend.
class Draft {
 public:
  virtual ~Draft() = default;

  virtual Result<void> append(ByteView bytes) = 0;
  virtual Result<Bytes> get_range(std::uint64_t offset, std::size_t size) = 0;  // of what was appended
  // As Backend::put() of all that was appended; nothing more can be.
  virtual Result<void> put(const FileName& name) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string location() const = 0;  // for messages: the path or address

  // What is there already is replaced. Names are hashes of contents, so that is the same bytes, or heals
  // damaged ones.
  virtual Result<void> put(const FileName& name, ByteView bytes) = 0;
  // For what is too large to be held until it is complete. Where a backend has no better way, the draft is
  // held in memory.
  virtual Result<std::unique_ptr<Draft>> begin();
  virtual Result<void> sync() = 0;
  // Durable at once, and what else was put need not be. What fails leaves nothing that a later sync would try
  // again, where the backend can tell.
  virtual Result<void> put_durably(const FileName& name, ByteView bytes);

  virtual Result<Bytes> get(const FileName& name) = 0;  // not_found if there is no such file
  // Exactly `size` bytes; corrupt if the file is shorter.
  virtual Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) = 0;
  // By name, what this Backend put included, synced or not; what others have not synced is not. Foreign
  // names are left out. Whatever stands under a name of ours is listed, even if it is no file: then its size
  // is 0 and reading it is corrupt.
  virtual Result<std::vector<FileInfo>> list(FileKind kind) = 0;
  virtual Result<void> remove(const FileName& name) = 0;  // removing what is not there is no error
};

// The file, if its bytes hash to its name; corrupt if not.
Result<Bytes> get_named(Backend& backend, const FileName& name);

// Who reads it again finds it no better: it is not there, or not as it was.
bool is_damage(const Error& error);

// A hash in hexadecimal, which every name but the config's is.
bool is_file_name(std::string_view name);

// Where a person says it is: a path, so far. Makes nothing.
Result<std::unique_ptr<Backend>> open_backend(const std::string& location);

std::unique_ptr<Backend> make_memory_backend();

}  // namespace kin::store
