#include "tests/support/faulty_backend.h"

#include "lib/base/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace kin::testing {
namespace {

Error crash_error() { return Error(ErrorCode::io, "the faulty disk has crashed"); }
Error missing(const FileName& name) { return Error(ErrorCode::not_found, name.text() + " is missing"); }

}  // namespace

std::unique_ptr<store::Backend> FaultyDisk::open() { return std::make_unique<FaultyBackend>(*this); }

void FaultyDisk::fail(Operation operation, std::uint64_t nth, ErrorCode code) {
  MutexLock lock(mutex_);
  faults_.insert_or_assign(operation, Fault{nth, code});
}

void FaultyDisk::crash() {
  MutexLock lock(mutex_);
  crash_locked();
}

void FaultyDisk::crash_after(std::uint64_t steps) {
  MutexLock lock(mutex_);
  steps_to_crash_ = steps;
  if (steps == 0) crash_locked();
}

void FaultyDisk::crash_locked() {
  crashed_ = true;
  steps_to_crash_.reset();
  std::size_t number = 0;
  for (auto& [process, files] : pending_)
    for (auto& [name, bytes] : files) {
      const bool is_kept =
          unsynced_ == Unsynced::kept || (unsynced_ == Unsynced::every_other && number++ % 2 == 0);
      if (is_kept) durable_.insert_or_assign(name, std::move(bytes));
    }
  pending_.clear();
}

void FaultyDisk::leave(Unsynced unsynced) {
  MutexLock lock(mutex_);
  unsynced_ = unsynced;
}

void FaultyDisk::restart() {
  MutexLock lock(mutex_);
  crashed_ = false;
  steps_to_crash_.reset();
  faults_.clear();
  pending_.clear();
  ++generation_;
}

bool FaultyDisk::crashed() const {
  MutexLock lock(mutex_);
  return crashed_;
}

void FaultyDisk::set_quota(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  quota_bytes_ = bytes;
}

std::uint64_t FaultyDisk::used_bytes() const {
  MutexLock lock(mutex_);
  return used_locked();
}

std::uint64_t FaultyDisk::used_locked() const {
  std::uint64_t used = draft_bytes_;
  for (const auto& [name, bytes] : durable_) used += bytes.size();
  for (const auto& [process, files] : pending_)
    for (const auto& [name, bytes] : files) used += bytes.size();
  return used;
}

bool FaultyDisk::has_room(std::uint64_t bytes) const {
  return bytes <= quota_bytes_ && used_locked() <= quota_bytes_ - bytes;
}

void FaultyDisk::damage(const FileName& name, Bytes bytes) {
  MutexLock lock(mutex_);
  KIN_CHECK(durable_.contains(name));
  damaged_.insert_or_assign(name, std::move(bytes));
}

void FaultyDisk::flip(const FileName& name, std::size_t offset, std::uint8_t mask) {
  Bytes bytes = file(name);
  KIN_CHECK(offset < bytes.size() && mask != 0);
  bytes[offset] = static_cast<std::uint8_t>(bytes[offset] ^ mask);
  damage(name, std::move(bytes));
}

void FaultyDisk::cut(const FileName& name, std::size_t length) {
  Bytes bytes = file(name);
  KIN_CHECK(length < bytes.size());
  bytes.resize(length);
  damage(name, std::move(bytes));
}

void FaultyDisk::spoil(const FileName& name, std::uint64_t offset, std::uint64_t size) {
  MutexLock lock(mutex_);
  spoiled_.insert_or_assign(name, Range{offset, size});
}

Result<void> FaultyDisk::require_readable(const FileName& name, std::uint64_t offset,
                                          std::uint64_t size) const {
  const auto at = spoiled_.find(name);
  if (at == spoiled_.end() || offset >= at->second.offset + at->second.size ||
      at->second.offset >= offset + size)
    return {};
  return Error(ErrorCode::io, name.text() + ": the faulty disk has a bad sector");
}

void FaultyDisk::heal() {
  MutexLock lock(mutex_);
  spoiled_.clear();
  damaged_.clear();
}

std::map<FileName, Bytes> FaultyDisk::files() const {
  MutexLock lock(mutex_);
  return durable_;
}

std::vector<FileName> FaultyDisk::names(FileKind kind) const {
  MutexLock lock(mutex_);
  std::vector<FileName> out;
  for (const auto& [name, bytes] : durable_)
    if (name.kind == kind) out.push_back(name);
  return out;
}

bool FaultyDisk::has(const FileName& name) const {
  MutexLock lock(mutex_);
  return durable_.contains(name);
}

Bytes FaultyDisk::file(const FileName& name) const {
  MutexLock lock(mutex_);
  KIN_CHECK(durable_.contains(name));
  return durable_.at(name);
}

void FaultyDisk::write(const FileName& name, Bytes bytes) {
  MutexLock lock(mutex_);
  durable_.insert_or_assign(name, std::move(bytes));
}

void FaultyDisk::erase(const FileName& name) {
  MutexLock lock(mutex_);
  durable_.erase(name);
  damaged_.erase(name);
  spoiled_.erase(name);
}

std::uint64_t FaultyDisk::count(Operation operation) const {
  MutexLock lock(mutex_);
  const auto at = counts_.find(operation);
  return at == counts_.end() ? 0 : at->second;
}

std::uint64_t FaultyDisk::steps() const {
  MutexLock lock(mutex_);
  return steps_;
}

Result<void> FaultyDisk::begin(Operation operation, std::uint64_t generation) {
  ++counts_[operation];
  if (crashed_ || generation != generation_) return crash_error();
  const auto fault = faults_.find(operation);
  if (fault == faults_.end() || --fault->second.countdown > 0) return {};
  const ErrorCode code = fault->second.code;
  faults_.erase(fault);
  return Error(code, "the faulty disk was told to fail");
}

bool FaultyDisk::step_crashes() {
  ++steps_;
  if (!steps_to_crash_ || --*steps_to_crash_ > 0) return false;
  crash_locked();
  return true;
}

const Bytes* FaultyDisk::find(std::uint64_t owner, const FileName& name) const {
  if (const auto own = pending_.find(owner); own != pending_.end())
    if (const auto at = own->second.find(name); at != own->second.end()) return &at->second;
  if (const auto at = damaged_.find(name); at != damaged_.end()) return &at->second;
  const auto at = durable_.find(name);
  return at == durable_.end() ? nullptr : &at->second;
}

FaultyBackend::FaultyBackend(FaultyDisk& disk) : disk_(disk) {
  MutexLock lock(disk_.mutex_);
  process_ = disk_.next_process_++;
  generation_ = disk_.generation_;
}

FaultyBackend::~FaultyBackend() {
  MutexLock lock(disk_.mutex_);
  disk_.pending_.erase(process_);
}

Result<void> FaultyBackend::put(const FileName& name, ByteView bytes) {
  MutexLock lock(disk_.mutex_);
  return put_locked(name, bytes);
}

Result<void> FaultyBackend::put_locked(const FileName& name, ByteView bytes) {
  KIN_TRY(disk_.begin(Operation::put, generation_));
  if (!disk_.has_room(bytes.size()))
    return Error(ErrorCode::no_space, name.text() + ": the faulty disk is full");
  disk_.pending_[process_].insert_or_assign(name, Bytes(bytes.begin(), bytes.end()));
  if (disk_.step_crashes()) return crash_error();
  return {};
}

class FaultyDraft : public store::Draft {
 public:
  explicit FaultyDraft(FaultyBackend& backend) : backend_(backend) {}
  ~FaultyDraft() override {
    MutexLock lock(backend_.disk_.mutex_);
    backend_.disk_.draft_bytes_ -= bytes_.size();
  }

  Result<void> append(ByteView bytes) override {
    MutexLock lock(backend_.disk_.mutex_);
    KIN_TRY(backend_.disk_.begin(Operation::append, backend_.generation_));
    if (!backend_.disk_.has_room(bytes.size()))
      return Error(ErrorCode::no_space, "a draft: the faulty disk is full");
    kin::append(bytes_, bytes);
    backend_.disk_.draft_bytes_ += bytes.size();
    if (backend_.disk_.step_crashes()) return crash_error();
    return {};
  }

  Result<Bytes> get_range(std::uint64_t offset, std::size_t size) override {
    MutexLock lock(backend_.disk_.mutex_);
    KIN_TRY(backend_.disk_.begin(Operation::get, backend_.generation_));
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      return Error(ErrorCode::corrupt, fmt::format("the draft has {} bytes", bytes_.size()));
    const ByteView range = ByteView(bytes_).subspan(static_cast<std::size_t>(offset), size);
    return Bytes(range.begin(), range.end());
  }

  Result<void> put(const FileName& name) override {
    MutexLock lock(backend_.disk_.mutex_);
    backend_.disk_.draft_bytes_ -= bytes_.size();  // no longer a draft's
    auto put = backend_.put_locked(name, bytes_);
    if (put) bytes_.clear();
    backend_.disk_.draft_bytes_ += bytes_.size();
    return put;
  }

 private:
  FaultyBackend& backend_;
  Bytes bytes_;
};

Result<std::unique_ptr<store::Draft>> FaultyBackend::begin() {
  return std::unique_ptr<store::Draft>(std::make_unique<FaultyDraft>(*this));
}

Result<void> FaultyBackend::sync() {
  MutexLock lock(disk_.mutex_);
  KIN_TRY(disk_.begin(Operation::sync, generation_));
  const auto own = disk_.pending_.find(process_);
  while (own != disk_.pending_.end() && !own->second.empty()) {
    const auto file = own->second.begin();
    disk_.damaged_.erase(file->first);
    disk_.spoiled_.erase(file->first);
    disk_.durable_.insert_or_assign(file->first, std::move(file->second));
    own->second.erase(file);
    if (disk_.step_crashes()) return crash_error();
  }
  return {};
}

Result<Bytes> FaultyBackend::get(const FileName& name) {
  MutexLock lock(disk_.mutex_);
  KIN_TRY(disk_.begin(Operation::get, generation_));
  const Bytes* const file = disk_.find(process_, name);
  if (file == nullptr) return missing(name);
  KIN_TRY(disk_.require_readable(name, 0, file->size()));
  return *file;
}

Result<Bytes> FaultyBackend::get_range(const FileName& name, std::uint64_t offset, std::size_t size) {
  MutexLock lock(disk_.mutex_);
  KIN_TRY(disk_.begin(Operation::get, generation_));
  const Bytes* const file = disk_.find(process_, name);
  if (file == nullptr) return missing(name);
  if (offset > file->size() || size > file->size() - offset)
    return Error(ErrorCode::corrupt,
                 fmt::format("{} is cut short: it has {} bytes", name.text(), file->size()));
  KIN_TRY(disk_.require_readable(name, offset, size));
  const ByteView range = ByteView(*file).subspan(static_cast<std::size_t>(offset), size);
  return Bytes(range.begin(), range.end());
}

Result<std::vector<FileInfo>> FaultyBackend::list(FileKind kind) {
  MutexLock lock(disk_.mutex_);
  KIN_TRY(disk_.begin(Operation::list, generation_));
  std::map<std::string, std::uint64_t> sizes;
  const auto add = [&](const FaultyDisk::Files& files) {
    for (const auto& [name, bytes] : files)
      if (name.kind == kind && store::is_file_name(name.name)) sizes[name.name] = bytes.size();
  };
  add(disk_.durable_);
  add(disk_.damaged_);
  if (const auto own = disk_.pending_.find(process_); own != disk_.pending_.end()) add(own->second);
  std::vector<FileInfo> out;
  for (const auto& [name, size] : sizes) out.push_back({name, size});
  return out;
}

Result<void> FaultyBackend::remove(const FileName& name) {
  MutexLock lock(disk_.mutex_);
  KIN_TRY(disk_.begin(Operation::remove, generation_));
  std::size_t removed = disk_.durable_.erase(name);
  disk_.damaged_.erase(name);
  disk_.spoiled_.erase(name);
  if (const auto own = disk_.pending_.find(process_); own != disk_.pending_.end())
    removed += own->second.erase(name);
  if (removed > 0 && disk_.step_crashes()) return crash_error();
  return {};
}

}  // namespace kin::testing
