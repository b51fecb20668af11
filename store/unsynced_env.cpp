#include "store/unsynced_env.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <string>
#include <utility>

namespace kin::store {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class UnsyncedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using rocksdb::FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
};

class UnsyncedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  using rocksdb::FSDirectoryWrapper::FSDirectoryWrapper;
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*, const rocksdb::DirFsyncOptions&) override {
    return IOStatus::OK();
  }
};

class UnsyncedFiles final : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "UnsyncedFiles"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* out, IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, out, debug);
    if (status.ok()) *out = std::make_unique<UnsyncedFile>(std::move(*out));
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* out, IODebugContext* debug) override {
    IOStatus status = target()->ReopenWritableFile(name, options, out, debug);
    if (status.ok()) *out = std::make_unique<UnsyncedFile>(std::move(*out));
    return status;
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* out, IODebugContext* debug) override {
    IOStatus status = target()->NewDirectory(name, options, out, debug);
    if (status.ok()) *out = std::make_unique<UnsyncedDirectory>(std::move(*out));
    return status;
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_unsynced_env() {
  return rocksdb::NewCompositeEnv(std::make_shared<UnsyncedFiles>(rocksdb::FileSystem::Default()));
}

}  // namespace kin::store
