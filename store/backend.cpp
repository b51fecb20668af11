#include "store/backend.h"

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "store/local_backend.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::store {
namespace {

class MemoryDraft : public Draft {
 public:
  explicit MemoryDraft(Backend& backend) : backend_(backend) {}

  Result<void> append(ByteView bytes) override {
    kin::append(bytes_, bytes);
    return {};
  }

  Result<Bytes> get_range(std::uint64_t offset, std::size_t size) override {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      return Error(ErrorCode::corrupt, fmt::format("the draft ends at {} bytes", bytes_.size()));
    const ByteView range = ByteView(bytes_).subspan(static_cast<std::size_t>(offset), size);
    return Bytes(range.begin(), range.end());
  }

  Result<void> put(const FileName& name) override { return backend_.put(name, bytes_); }

 private:
  Backend& backend_;
  Bytes bytes_;
};

}  // namespace

Result<std::unique_ptr<Draft>> Backend::begin() {
  return std::unique_ptr<Draft>(std::make_unique<MemoryDraft>(*this));
}

Result<void> Backend::put_durably(const FileName& name, ByteView bytes) {
  KIN_TRY(put(name, bytes));
  return sync();
}

std::string_view name_of(FileKind kind) {
  switch (kind) {
    case FileKind::config:
      return "config";
    case FileKind::key:
      return "key";
    case FileKind::pack:
      return "pack";
    case FileKind::index:
      return "index segment";
    case FileKind::snapshot:
      return "snapshot";
    case FileKind::forgotten:
      return "forgotten snapshot";
    case FileKind::mark:
      return "mark";
    case FileKind::parity:
      return "parity";
  }
  return "file";
}

std::string FileName::text() const {
  return kind == FileKind::config ? "config" : fmt::format("{} {}", name_of(kind), name.substr(0, 8));
}

bool is_file_name(std::string_view name) {
  return name.size() == 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_damage(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::not_found;
}

Result<Bytes> get_named(Backend& backend, const FileName& name) {
  KIN_TRY_ASSIGN(Bytes file, backend.get(name));
  if (hex(hash(file)) != name.name)
    return Error(ErrorCode::corrupt, name.text() + ": checksum mismatch: the file is damaged");
  return file;
}

Result<std::unique_ptr<Backend>> open_backend(const std::string& location) {
  const std::size_t colon = location.find("://");
  if (colon != std::string::npos && location.find('/') > colon)
    return Error(
        ErrorCode::unsupported,
        fmt::format("{} is not a local path, and kin has no other kind of repository yet", location));
  return std::unique_ptr<Backend>(std::make_unique<LocalBackend>(location));
}

}  // namespace kin::store
