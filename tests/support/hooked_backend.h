// HookedBackend: does something before a call goes through: what another does just then.
#pragma once

#include "tests/support/faulty_backend.h"

#include <functional>
#include <memory>
#include <utility>

namespace kin::testing {

class HookedBackend : public store::Backend {
 public:
  // Not before those of drafts.
  using Hook = std::function<void(Operation, FileKind)>;

  HookedBackend(FaultyDisk& disk, Hook before) : inner_(disk.open()), before_(std::move(before)) {}

  std::string location() const override { return inner_->location(); }
  Result<void> put(const FileName& name, ByteView bytes) override {
    before_(Operation::put, name.kind);
    return inner_->put(name, bytes);
  }
  Result<std::unique_ptr<store::Draft>> begin() override { return inner_->begin(); }
  Result<void> sync() override { return inner_->sync(); }
  Result<Bytes> get(const FileName& name) override {
    before_(Operation::get, name.kind);
    return inner_->get(name);
  }
  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override {
    before_(Operation::get, name.kind);
    return inner_->get_range(name, offset, size);
  }
  Result<std::vector<FileInfo>> list(FileKind kind) override {
    before_(Operation::list, kind);
    return inner_->list(kind);
  }
  Result<void> remove(const FileName& name) override {
    before_(Operation::remove, name.kind);
    return inner_->remove(name);
  }

 private:
  const std::unique_ptr<store::Backend> inner_;
  const Hook before_;
};

}  // namespace kin::testing
