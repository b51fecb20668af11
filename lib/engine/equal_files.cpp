// Equal files have equal prints, whatever the detector. So only those whose prints and sizes are equal are
// compared, by the BLAKE2b of all they have. For most files of most trees that means that nothing is read
// twice, and for detectors that read a few blocks only, that nothing else is read at all.
#include "lib/engine/equal_files.h"

#include "lib/base/hash.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace kin {
namespace {

std::uint64_t rough_hash(const Print& print) {
  std::uint64_t out = print.file_bytes * 0x9e3779b97f4a7c15 + print.checksum;
  for (const std::uint64_t value : print.values) out = (out ^ value) * 0x100000001b3;
  return out;
}

Result<Digest> content_hash(const std::string& path, const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const auto content, FileContent::open(path, stop));
  Hasher hasher;
  KIN_TRY(for_each_piece(*content, 0, [&](ByteView bytes, std::uint64_t) { hasher.add(bytes); }));
  return hasher.finish();
}

}  // namespace

Result<std::vector<std::vector<std::uint32_t>>> equal_files(const PrintedFiles& files,
                                                            const OnSkippedFile& on_skipped,
                                                            const std::stop_token& stop) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> rough;
  for (std::uint32_t at = 0; at < files.files.size(); ++at) rough[rough_hash(files.prints[at])].push_back(at);
  std::vector<std::vector<std::uint32_t>> out;
  for (const auto& [ignored, places] : rough) {
    if (places.size() < 2) continue;
    std::map<Digest, std::vector<std::uint32_t>> exact;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Digest> read;  // names of one file are one
    for (const std::uint32_t at : places) {
      if (stop.stop_requested()) return interrupted();
      const ComparedFile& file = files.files[at];
      const std::pair inode(file.device, file.inode);
      auto known = read.find(inode);
      if (known == read.end()) {
        const auto digest = content_hash(file.path, stop);
        if (!digest) {
          if (stop.stop_requested()) return interrupted();
          on_skipped(file.path, digest.error());
          continue;
        }
        known = read.emplace(inode, *digest).first;
      }
      exact[known->second].push_back(at);
    }
    for (auto& [digest, equal] : exact)
      if (equal.size() > 1) out.push_back(std::move(equal));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<bool> have_equal_content(const std::string& a, const std::string& b, const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const auto left, FileContent::open(a));
  KIN_TRY_ASSIGN(const auto right, FileContent::open(b));
  // What the kernel makes up while it is read has no size.
  if (left->size() != right->size() && left->size() != 0 && right->size() != 0) return false;
  Bytes one(kContentPieceBytes), two(kContentPieceBytes);
  for (std::uint64_t offset = 0;; offset += one.size()) {
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::size_t got, left->read_at(offset, one));
    KIN_TRY_ASSIGN(const std::size_t other, right->read_at(offset, two));
    if (!equal(ByteView(one).first(got), ByteView(two).first(other))) return false;
    if (got < one.size()) return true;
  }
}

}  // namespace kin
