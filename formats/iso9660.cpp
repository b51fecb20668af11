// ISO 9660 (CD and DVD images): directories say where files lie. Images are written with the directories in
// front of the files, so one pass is enough: what has been read says where the next directory or file begins.
// Nothing depends on it being so. What lies behind us when we learn of it was handed out already, as part of
// something else, and what nobody has told us of is handed out between members.
//
// Names are those of Rock Ridge where they are there. Joliet's directories point at the same files and are
// not read. libarchive reads such images too, but does not tell where in the image a file was
// (docs/decisions/0013).
#include "formats/fields.h"
#include "formats/formats.h"
#include "formats/parts.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kin::formats {
namespace {

constexpr std::size_t kSector = 2048;
constexpr std::size_t kSystemArea = 16 * kSector;
constexpr std::size_t kLeastRecord = 34;  // of a directory's record with the shortest name
constexpr std::size_t kRootRecord = 156;  // in the primary volume descriptor
constexpr int kMostDescriptors = 64;
// Of directories that are read, so that an image cannot make us remember more than some hundred thousand
// files. Files of further directories are not told apart.
constexpr std::uint64_t kMostDirectorySectors = 4096;
constexpr int kMostDepth = 64;  // of a name

bool is_volume_descriptor(ByteView sector) {
  return sector.size() >= kSector && as_text(sector.subspan(1, 5)) == "CD001";
}

bool is_iso(ByteView head) {
  return head.size() >= kSystemArea + kSector && head[kSystemArea] == 1 &&
         is_volume_descriptor(head.subspan(kSystemArea));
}

struct IsoRecord {
  std::uint64_t block;
  std::uint64_t size;
  bool is_directory;
  bool goes_on;      // in the next record
  bool interleaved;  // with another file
  bool is_self_or_parent;
  std::string_view name;
};

// Rock Ridge's name, among the entries of the System Use Sharing Protocol.
std::string_view rock_ridge_name(ByteView entries) {
  while (entries.size() >= 5) {
    const std::size_t size = entries[2];
    if (size < 5 || size > entries.size()) break;
    if (as_text(entries.first(2)) == "NM") return as_text(entries.subspan(5, size - 5));
    entries = entries.subspan(size);
  }
  return {};
}

// `bytes` is a record, as long as it says that it is.
IsoRecord read_iso_record(ByteView bytes) {
  const std::size_t name_size = std::min<std::size_t>(bytes[32], bytes.size() - 33);
  const std::size_t name_end = std::min(33 + name_size + (name_size % 2 == 0 ? 1 : 0), bytes.size());
  std::string_view name = rock_ridge_name(bytes.subspan(name_end));
  if (name.empty()) {
    name = as_text(bytes.subspan(33, name_size));
    name = name.substr(0, name.find(';'));  // the version, which is always 1
  }
  return {little_endian(bytes.subspan(2, 4)) + bytes[1],  // behind the extended attributes
          little_endian(bytes.subspan(10, 4)),
          (bytes[25] & 2) != 0,
          (bytes[25] & 0x80) != 0,
          bytes[26] != 0,
          name_size == 1 && bytes[33] <= 1,
          name};
}

class Iso {
 public:
  Iso(PeekSource& in, PartSink& out) : in_(in), out_(out) {}

  Result<void> run() {
    KIN_TRY(take_gap(in_, out_, kSystemArea));
    KIN_TRY(read_descriptors());
    while (!areas_.empty()) {
      const auto [start, area] = *areas_.begin();
      areas_.erase(areas_.begin());
      if (start < in_.position()) continue;
      KIN_TRY(take_gap(in_, out_, start - in_.position()));
      if (in_.position() < start) break;  // the image is shorter than it says
      if (area.is_directory) {
        KIN_TRY(read_directory(area));
      } else {
        LimitedSource content(in_, area.size);
        KIN_TRY(out_.member(path_of(area), content));
      }
    }
    return take_rest(in_, out_);
  }

 private:
  // A file or a directory, where it lies.
  struct Area {
    std::uint64_t size;
    bool is_directory;
    std::size_t parent;  // in names_
    std::string name;
  };
  struct DirectoryName {
    std::size_t parent;
    std::string name;
  };

  Result<void> read_descriptors() {
    for (int i = 0; i < kMostDescriptors; ++i) {
      KIN_TRY_ASSIGN(const ByteView sector, in_.peek(kSector));
      if (!is_volume_descriptor(sector)) return {};
      const std::uint8_t type = sector[0];
      if (type == 1 && areas_.empty()) {
        block_size_ = little_endian(sector.subspan(128, 2));
        const IsoRecord root = read_iso_record(sector.subspan(kRootRecord, kLeastRecord));
        areas_.emplace(root.block * block_size_, Area{root.size, true, 0, ""});
      }
      KIN_TRY(take_literal(in_, out_, kSector));
      if (type == 255) return {};
    }
    return {};
  }

  // Records do not go beyond a sector's end, so that sectors can be read one by one.
  Result<void> read_directory(const Area& area) {
    // Whole sectors: one is read to its end, however little of it the directory is said to have.
    const std::uint64_t sectors = (area.size + kSector - 1) / kSector;
    if (sectors > kMostDirectorySectors - directory_sectors_) return {};
    directory_sectors_ += sectors;
    names_.push_back({area.parent, area.name});
    std::uint64_t continued_at = 0;  // where a file began that goes on in the next record
    for (std::uint64_t left = area.size; left > 0; left -= std::min<std::uint64_t>(left, kSector)) {
      KIN_TRY_ASSIGN(const ByteView sector, in_.peek(kSector));
      for (std::size_t at = 0; at < sector.size();) {
        const std::size_t size = sector[at];
        if (size < kLeastRecord || size > sector.size() - at) break;
        continued_at = note(read_iso_record(sector.subspan(at, size)), continued_at);
        at += size;
      }
      KIN_TRY(take_literal(in_, out_, kSector));
    }
    return {};
  }

  // Gives where the file begins, if it goes on.
  std::uint64_t note(const IsoRecord& record, std::uint64_t continued_at) {
    if (record.size == 0 || record.interleaved || record.is_self_or_parent) return 0;
    const std::uint64_t start = record.block * block_size_;
    const auto before = areas_.find(continued_at);
    if (continued_at != 0 && before != areas_.end() && before->first + before->second.size == start) {
      before->second.size += record.size;
      return record.goes_on ? continued_at : 0;
    }
    // Files of the same content may lie in the same place.
    areas_.try_emplace(start,
                       Area{record.size, record.is_directory, names_.size() - 1, std::string(record.name)});
    return record.goes_on ? start : 0;
  }

  std::string path_of(const Area& area) const {
    std::string path = area.name;
    std::size_t directory = area.parent;
    for (int depth = 0; directory != 0 && depth < kMostDepth; ++depth) {
      path.insert(0, names_[directory].name + "/");
      directory = names_[directory].parent;
    }
    return path;
  }

  PeekSource& in_;
  PartSink& out_;
  std::uint64_t block_size_ = kSector;
  std::map<std::uint64_t, Area> areas_;  // known and not reached yet, by their first byte
  std::vector<DirectoryName> names_;     // of directories that were read; the root is the first
  std::uint64_t directory_sectors_ = 0;
};

Result<void> open_iso(PeekSource& in, PartSink& out, const ContainerLimits&) { return Iso(in, out).run(); }

}  // namespace

const ContainerFormat kIso = {"iso9660", is_iso, open_iso};

}  // namespace kin::formats
