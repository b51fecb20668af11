// A Backend in memory: for tests, and the twin that shows what the others must do.
#include "lib/base/mutex.h"
#include "store/backend.h"

#include <fmt/core.h>

#include <map>

namespace kin::store {
namespace {

class MemoryBackend : public Backend {
 public:
  std::string location() const override { return "memory"; }

  Result<void> put(const FileName& name, ByteView bytes) override {
    MutexLock lock(mutex_);
    files_[name] = Bytes(bytes.begin(), bytes.end());
    return {};
  }

  Result<void> sync() override { return {}; }

  Result<Bytes> get(const FileName& name) override {
    MutexLock lock(mutex_);
    const auto file = files_.find(name);
    if (file == files_.end()) return Error(ErrorCode::not_found, name.text() + " is missing");
    return file->second;
  }

  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override {
    MutexLock lock(mutex_);
    const auto file = files_.find(name);
    if (file == files_.end()) return Error(ErrorCode::not_found, name.text() + " is missing");
    const Bytes& bytes = file->second;
    if (offset > bytes.size() || size > bytes.size() - offset)
      return Error(ErrorCode::corrupt,
                   fmt::format("{} is cut short: it ends before byte {}", name.text(), offset + size));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size));
  }

  Result<std::vector<FileInfo>> list(FileKind kind) override {
    MutexLock lock(mutex_);
    std::vector<FileInfo> out;
    for (const auto& [name, bytes] : files_)
      if (name.kind == kind && is_file_name(name.name)) out.push_back({name.name, bytes.size()});
    return out;
  }

  Result<void> remove(const FileName& name) override {
    MutexLock lock(mutex_);
    files_.erase(name);
    return {};
  }

 private:
  Mutex mutex_;
  std::map<FileName, Bytes> files_ KIN_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Backend> make_memory_backend() { return std::make_unique<MemoryBackend>(); }

}  // namespace kin::store
