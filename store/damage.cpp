#include "store/damage.h"

#include <algorithm>
#include <array>

namespace kin::store {
namespace {

constexpr std::array<std::pair<std::string_view, DamageKind>, 6> kNames{{{"flip", DamageKind::flip},
                                                                         {"zero", DamageKind::zero},
                                                                         {"swap", DamageKind::swap},
                                                                         {"cut", DamageKind::cut},
                                                                         {"truncate", DamageKind::truncate},
                                                                         {"drop", DamageKind::drop}}};
constexpr std::uint64_t kMostBytes = 4096;  // of a stretch

}  // namespace

std::optional<DamageKind> parse_damage_kind(std::string_view name) {
  for (const auto& [known, kind] : kNames)
    if (known == name) return kind;
  return std::nullopt;
}

std::string_view name_of(DamageKind kind) {
  for (const auto& [name, known] : kNames)
    if (known == kind) return name;
  return "";
}

Result<FileInfo> Damager::choose(const std::vector<FileKind>& files, std::uint64_t least_bytes,
                                 FileKind& kind) {
  std::vector<std::pair<FileKind, FileInfo>> found;
  std::uint64_t all = 0;
  for (const FileKind one : files) {
    KIN_TRY_ASSIGN(const std::vector<FileInfo> listed, backend_.list(one));
    for (const FileInfo& file : listed) {
      if (file.size < least_bytes) continue;
      found.emplace_back(one, file);
      all += file.size;
    }
  }
  if (found.empty()) return Error(ErrorCode::not_found, "there is no file that could be harmed so");
  // Whatever order they are listed in.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.name) < std::pair(b.first, b.second.name);
  });
  std::uint64_t at = below(all);
  for (const auto& [one, file] : found) {
    kind = one;
    if (at < file.size) return file;
    at -= file.size;
  }
  return found.back().second;
}

Result<Damaged> Damager::harm(const std::vector<FileKind>& files, DamageKind kind) {
  Damaged out;
  out.kind = kind;
  KIN_TRY_ASSIGN(const FileInfo file, choose(files, kind == DamageKind::swap ? 2 : 1, out.file.kind));
  out.file.name = file.name;
  if (kind == DamageKind::drop) {
    out.bytes = file.size;
    KIN_TRY(backend_.remove(out.file));
    return out;
  }
  KIN_TRY_ASSIGN(Bytes bytes, backend_.get(out.file));
  if (bytes.empty()) return Error(ErrorCode::not_found, out.file.text() + " is empty");
  const Bytes before = bytes;
  out.offset = below(bytes.size());
  out.bytes = std::min<std::uint64_t>(1 + below(kMostBytes), bytes.size() - out.offset);
  const auto place = [&](std::uint64_t offset) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  };
  switch (kind) {
    case DamageKind::flip:
      out.bytes = 1;
      bytes[out.offset] ^= static_cast<std::uint8_t>(1U << below(8));
      break;
    case DamageKind::zero:
      std::fill(place(out.offset), place(out.offset + out.bytes), 0);
      break;
    case DamageKind::swap: {
      // The first stretch in the first half, the second in the other.
      const std::uint64_t half = bytes.size() / 2;
      out.offset = below(half);
      out.bytes = std::min(1 + below(kMostBytes), half - out.offset);
      std::swap_ranges(place(out.offset), place(out.offset + out.bytes), place(half + out.offset));
      break;
    }
    case DamageKind::cut:
      bytes.erase(place(out.offset), place(out.offset + out.bytes));
      break;
    case DamageKind::truncate:
      out.bytes = bytes.size() - out.offset;
      bytes.resize(out.offset);
      break;
    case DamageKind::drop:
      break;
  }
  // What is zero already, or the same twice, would be harmed in name only.
  if (bytes == before) bytes[out.offset] ^= 1;
  KIN_TRY(backend_.put(out.file, bytes));
  KIN_TRY(backend_.sync());
  return out;
}

}  // namespace kin::store
