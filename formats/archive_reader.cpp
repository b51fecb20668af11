#include "formats/archive_reader.h"

#include "formats/gunzip_source.h"
#include "formats/seven_zip_names.h"
#include "formats/utf8_locale.h"
#include "formats/zip_names.h"
#include "lib/base/check.h"
#include "lib/base/file.h"
#include "lib/base/path_text.h"
#include "lib/base/text.h"
#include "lib/container/peek_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <grp.h>
#include <map>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::formats {
namespace {

constexpr std::size_t kReadBytes = 256 << 10;
constexpr std::size_t kLookBytes = 64 << 20;  // of what is no archive; a block of bzip2 may have nearly that
constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr std::uint32_t kNobody = 65534;  // for numbers that Linux has not

void support_all(struct archive* archive, bool seekable) {
  archive_read_support_filter_bzip2(archive);
  archive_read_support_filter_compress(archive);
  archive_read_support_filter_gzip(archive);  // only for what is in others: of a file, GunzipSource reads it
  archive_read_support_filter_lz4(archive);
  archive_read_support_filter_lzip(archive);
  archive_read_support_filter_lzma(archive);
  archive_read_support_filter_rpm(archive);
  archive_read_support_filter_uu(archive);
  archive_read_support_filter_xz(archive);
  archive_read_support_filter_zstd(archive);
  archive_read_support_format_tar(archive);
  archive_read_support_format_cpio(archive);
  archive_read_support_format_raw(archive);  // whatever is no archive, and could be decompressed
  if (!seekable) return;
  archive_read_support_format_7zip(archive);
  archive_read_support_format_ar(archive);
  archive_read_support_format_cab(archive);
  archive_read_support_format_iso9660(archive);
  archive_read_support_format_lha(archive);
  archive_read_support_format_rar(archive);
  archive_read_support_format_rar5(archive);
  archive_read_support_format_warc(archive);
  archive_read_support_format_xar(archive);
  archive_read_support_format_zip_seekable(archive);
}

// Safe names with '/' between them.
Result<std::string> safe_path(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..")
      return Error(
          ErrorCode::unsupported,
          fmt::format("the archive has an entry named {}, which would lie outside of it; nothing of such "
                      "an archive is imported",
                      path_text(name)));
    out.append(out.empty() ? "" : "/").append(part);
  }
  return out;
}

std::optional<NodeType> node_type(archive_entry* entry) {
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case 0:  // some links and some old formats
      return NodeType::file;
    case AE_IFDIR:
      return NodeType::directory;
    case AE_IFLNK:
      return NodeType::symlink;
    case AE_IFIFO:
      return NodeType::fifo;
    case AE_IFSOCK:
      return NodeType::socket;
    case AE_IFCHR:
      return NodeType::character_device;
    case AE_IFBLK:
      return NodeType::block_device;
    default:
      return std::nullopt;
  }
}

std::uint32_t owner_number(la_int64_t number) {
  return number >= 0 && number < 0xffff'ffff ? static_cast<std::uint32_t>(number) : kNobody;
}

Timestamp timestamp(std::int64_t seconds, long nanoseconds) {
  if (nanoseconds < 0 || nanoseconds > 999'999'999) return {seconds, 0};
  return {seconds, static_cast<std::uint32_t>(nanoseconds)};
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The kernel's number for a kind of entry in an ACL; its order is that of the numbers.
std::uint16_t kernel_tag(int tag) {
  switch (tag) {
    case ARCHIVE_ENTRY_ACL_USER_OBJ:
      return 0x01;
    case ARCHIVE_ENTRY_ACL_USER:
      return 0x02;
    case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
      return 0x04;
    case ARCHIVE_ENTRY_ACL_GROUP:
      return 0x08;
    case ARCHIVE_ENTRY_ACL_MASK:
      return 0x10;
    case ARCHIVE_ENTRY_ACL_OTHER:
      return 0x20;
    default:
      return 0;
  }
}

// GNU tar writes users and groups into ACLs by name, or as digits where there is none.
std::optional<std::uint32_t> owner_named(const std::string& name, bool group) {
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  if (const auto [at, failed] = std::from_chars(name.data(), end, number); failed == std::errc() && at == end)
    return number;
  std::vector<char> buffer(16 << 10);
  passwd user{}, *found_user = nullptr;
  ::group members{}, *found_group = nullptr;
  if (group) {
    ::getgrnam_r(name.c_str(), &members, buffer.data(), buffer.size(), &found_group);
    return found_group != nullptr ? std::optional(found_group->gr_gid) : std::nullopt;
  }
  ::getpwnam_r(name.c_str(), &user, buffer.data(), buffer.size(), &found_user);
  return found_user != nullptr ? std::optional(found_user->pw_uid) : std::nullopt;
}

// Of one kind, access or default, as the attribute in which the kernel keeps it: the reverse of what
// ArchiveWriter does. Empty if there is none. Nothing if it cannot be kept: ACLs of other systems, and those
// that name users whom this machine does not know. `mask` is what the mode has in the place of the group's
// bits.
std::optional<Bytes> read_acl(archive_entry* entry, int kind, std::optional<std::uint32_t>& mask) {
  struct AclEntry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
    auto operator<=>(const AclEntry&) const = default;
  };
  std::vector<AclEntry> entries;
  if (archive_entry_acl_reset(entry, kind) <= 0) return Bytes();
  int type = 0, permissions = 0, tag = 0, id = -1;
  const char* name = nullptr;
  while (archive_entry_acl_next(entry, kind, &type, &permissions, &tag, &id, &name) == ARCHIVE_OK) {
    const std::uint16_t number = kernel_tag(tag);
    const bool named = tag == ARCHIVE_ENTRY_ACL_USER || tag == ARCHIVE_ENTRY_ACL_GROUP;
    const auto bits = static_cast<std::uint16_t>(permissions & 7);
    std::optional<std::uint32_t> owner = 0xffff'ffff;
    if (named)
      owner = id >= 0 ? static_cast<std::uint32_t>(id)
                      : owner_named(text_of(name), tag == ARCHIVE_ENTRY_ACL_GROUP);
    if (number == 0 || !owner) return std::nullopt;
    entries.push_back({number, bits, *owner});
    if (tag == ARCHIVE_ENTRY_ACL_MASK) mask = bits;
  }
  std::sort(entries.begin(), entries.end());
  Bytes out{2, 0, 0, 0};  // the version
  const auto add = [&](std::uint32_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(number >> 8 * i));
  };
  for (const AclEntry& acl : entries) {
    add(acl.tag, 2);
    add(acl.permissions, 2);
    add(acl.id, 4);
  }
  return out;
}

}  // namespace

struct ArchiveReader::State {
  class FileSource : public ByteSource {
   public:
    FileSource(int fd, const std::string& name, const std::stop_token& stop)
        : fd_(fd), name_(name), stop_(stop) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
      return read_pipe(fd_, into, name_, stop_);
    }

   private:
    const int fd_;
    const std::string& name_;
    const std::stop_token& stop_;
  };

  State(int fd_, std::string name_, Warn warn_, std::stop_token stop_)
      : fd(fd_), name(std::move(name_)), warn(std::move(warn_)), stop(std::move(stop_)) {
    KIN_CHECK(archive != nullptr);
  }
  ~State() { archive_read_free(archive); }

  Result<void> open();
  Result<void> open_archive();
  Result<int> next_header();
  // As the archive has it.
  std::optional<std::string> entry_name();
  // To bytes of the file.
  void apply_marks(std::span<std::uint8_t> bytes, std::uint64_t offset) const;
  Error error();
  Error no_archive();
  Result<Node> describe(NodeType type, const std::string& path);
  void add_attributes(Node& node, const std::string& path);
  // The next block of content; false at its end.
  Result<bool> fetch();

  const int fd;
  const std::string name;
  const Warn warn;
  const std::stop_token stop;
  FileSource file{fd, name, stop};
  PeekSource start{file};
  std::unique_ptr<GunzipSource> gunzip;
  ByteSource* source = &start;
  bool seekable = false;
  std::uint64_t file_bytes = 0;
  Bytes buffer;
  std::optional<Error> read_error;  // of the source; libarchive itself only knows that there was one

  struct archive* archive = archive_read_new();
  archive_entry* entry = nullptr;  // libarchive's
  bool opened = false, is_link = false;
  bool in_utf8 = false;                // the locale in which libarchive reads
  std::vector<ByteMask> marks;         // of a zip
  std::optional<SevenZipNames> names;  // of a 7z
  std::uint64_t absolute_names = 0;

  ByteView block;  // what is left of the last one
  std::uint64_t block_offset = 0;
  std::uint64_t position = 0;  // in the entry's content
  bool ended = false;          // its content
  bool any_content = false;
};

Result<void> ArchiveReader::State::open() {
  struct stat info {};
  seekable = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  file_bytes = seekable ? static_cast<std::uint64_t>(info.st_size) : 0;
  KIN_TRY_ASSIGN(const ByteView head, start.peek(3));
  if (looks_like_gzip(head)) {
    gunzip = std::make_unique<GunzipSource>(start);
    source = gunzip.get();
    seekable = false;
  } else if (seekable) {
    source = &file;
  }
  buffer.resize(kReadBytes);
  return open_archive();
}

Result<void> ArchiveReader::State::open_archive() {
  if (seekable && ::lseek(fd, 0, SEEK_SET) < 0) return errno_error("cannot read", name);
  support_all(archive, seekable);
  archive_read_set_callback_data(archive, this);
  archive_read_set_read_callback(
      archive, [](struct archive* failed, void* context, const void** bytes) -> la_ssize_t {
        State& state = *static_cast<State*>(context);
        const off_t at = state.marks.empty() ? 0 : ::lseek(state.fd, 0, SEEK_CUR);
        auto got = state.source->read(state.buffer);
        *bytes = state.buffer.data();
        if (got) {
          state.apply_marks(std::span(state.buffer).first(*got), static_cast<std::uint64_t>(at));
          return static_cast<la_ssize_t>(*got);
        }
        state.read_error = std::move(got).error();
        archive_set_error(failed, EIO, "cannot be read");
        return -1;
      });
  if (seekable)
    archive_read_set_seek_callback(
        archive, [](struct archive*, void* context, la_int64_t offset, int whence) -> la_int64_t {
          const off_t at = ::lseek(static_cast<State*>(context)->fd, offset, whence);
          return at < 0 ? ARCHIVE_FATAL : at;
        });
  if (archive_read_open1(archive) != ARCHIVE_OK) return error();
  return {};
}

void ArchiveReader::State::apply_marks(std::span<std::uint8_t> bytes, std::uint64_t offset) const {
  auto mark = std::lower_bound(marks.begin(), marks.end(), offset,
                               [](const ByteMask& of, std::uint64_t at) { return of.offset < at; });
  for (; mark != marks.end() && mark->offset - offset < bytes.size(); ++mark)
    bytes[mark->offset - offset] &= mark->keep;
}

// Names are bytes, and two that differ are two. libarchive takes those that an archive says are Unicode
// through normal form C, whichever way they are asked for. What it leaves alone are names that it cannot
// convert, in tar, which are all beyond ASCII in the C locale; those of cpio; and in zip such as are not
// marked as UTF-8. 7z and the rest, whose names are no bytes, it has to read in UTF-8, and so begins anew
// with them. Of 7z we read the names ourselves.
Result<int> ArchiveReader::State::next_header() {
  const bool first = entry == nullptr;
  {
    std::optional<Utf8Locale> locale;
    if (in_utf8) locale.emplace();
    const int result = archive_read_next_header(archive, &entry);
    const int format = archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK;
    if (format == ARCHIVE_FORMAT_RAW) return no_archive();
    if (in_utf8 || !first || !seekable || format == 0 || format == ARCHIVE_FORMAT_TAR ||
        format == ARCHIVE_FORMAT_CPIO)
      return result;
    if (format == ARCHIVE_FORMAT_ZIP) marks = utf8_marks_of_zip(fd, file_bytes);
    if (format == ARCHIVE_FORMAT_7ZIP) names = SevenZipNames::read(fd, file_bytes);
  }
  archive_read_free(archive);
  archive = archive_read_new();
  KIN_CHECK(archive != nullptr);
  entry = nullptr;
  in_utf8 = true;
  KIN_TRY(open_archive());
  return next_header();
}

std::optional<std::string> ArchiveReader::State::entry_name() {
  const std::optional<std::string> exact = names ? names->next() : std::nullopt;
  const char* const given = archive_entry_pathname(entry);
  // ASCII stays what it is, but for the slash that libarchive adds to directories.
  if (exact && given != nullptr && (!is_ascii(*exact) || *exact == given || *exact + "/" == given))
    return exact;
  return given != nullptr ? std::optional<std::string>(given) : std::nullopt;
}

Error ArchiveReader::State::error() {
  if (read_error) return *read_error;
  if (stop.stop_requested()) return interrupted();
  // Without a format, libarchive would look for one at no address.
  if (archive_format(archive) != 0 && archive_read_has_encrypted_entries(archive) > 0)
    return Error(ErrorCode::unsupported, printable(name) + " is encrypted, which kin cannot read");
  const std::string text = text_of(archive_error_string(archive));
  if (text == "Unrecognized archive format") return no_archive();
  return Error(ErrorCode::corrupt,
               fmt::format("cannot read {}: {}", printable(name),
                           text.empty() ? "libarchive does not say why" : printable(text)));
}

Error ArchiveReader::State::no_archive() {
  if (read_error) return *read_error;
  if (stop.stop_requested()) return interrupted();
  const bool filtered = archive_filter_count(archive) > 1, compressed = filtered || gunzip != nullptr;
  const bool raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
  if (filtered && !raw)  // nothing came out of it
    return Error(ErrorCode::corrupt,
                 fmt::format("cannot read {}: it is compressed with {}, and damaged or empty",
                             printable(name), text_of(archive_filter_name(archive, 0))));
  // Garbage may have come out of it, of which only a checksum behind it tells.
  for (std::size_t seen = 0, size = 0; compressed && raw && seen < kLookBytes; seen += size) {
    const void* bytes = nullptr;
    la_int64_t offset = 0;
    const int result = archive_read_data_block(archive, &bytes, &size, &offset);
    if (result == ARCHIVE_EOF) break;
    if (result != ARCHIVE_OK) return error();
  }
  Bytes head(kZipMagic.size());
  if (seekable && read_up_to_at(fd, head, 0, name) && as_text(head) == kZipMagic)
    return Error(ErrorCode::corrupt,
                 fmt::format("cannot read {}: it begins as a zip and has no directory at its end, so it is "
                             "damaged or cut off",
                             printable(name)));
  return Error(
      ErrorCode::unsupported,
      fmt::format("{} is no archive that kin can read{}", printable(name),
                  seekable            ? ""
                  : gunzip != nullptr ? " (in gzip, that is tar and cpio)"
                                      : " (from a pipe, that is tar and cpio; others have to be files)"));
}

void ArchiveReader::State::add_attributes(Node& node, const std::string& path) {
  std::map<std::string, Bytes> attributes;  // bsdtar writes each twice, in two forms
  archive_entry_xattr_reset(entry);
  const char* key = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (archive_entry_xattr_next(entry, &key, &value, &size) == ARCHIVE_OK) {
    const auto* const bytes = static_cast<const std::uint8_t*>(value);
    if (key != nullptr && *key != 0) attributes[key].assign(bytes, bytes + size);
  }
  std::optional<std::uint32_t> mask, default_mask;
  const std::optional<Bytes> access = read_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, mask);
  const std::optional<Bytes> by_default = read_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, default_mask);
  if (access && !access->empty()) {
    attributes["system.posix_acl_access"] = *access;
    if (mask) node.mode = (node.mode & ~070U) | *mask << 3;
  }
  if (by_default && !by_default->empty()) attributes["system.posix_acl_default"] = *by_default;
  if (!access || !by_default || (archive_entry_acl_types(entry) & ARCHIVE_ENTRY_ACL_TYPE_NFS4) != 0)
    warn(path_text(path) + " has an access control list that kin cannot keep");
  for (auto& [attribute, bytes] : attributes) node.attributes.push_back({attribute, std::move(bytes)});
}

Result<Node> ArchiveReader::State::describe(NodeType type, const std::string& path) {
  Node node;
  node.type = type;
  node.mode = archive_entry_perm(entry) & 07777;
  node.uid = owner_number(archive_entry_uid(entry));
  node.gid = owner_number(archive_entry_gid(entry));
  node.user = text_of(archive_entry_uname(entry));
  node.group = text_of(archive_entry_gname(entry));
  if (archive_entry_mtime_is_set(entry) != 0)
    node.mtime = timestamp(archive_entry_mtime(entry), archive_entry_mtime_nsec(entry));
  node.ctime = archive_entry_ctime_is_set(entry) != 0
                   ? timestamp(archive_entry_ctime(entry), archive_entry_ctime_nsec(entry))
                   : node.mtime;
  if (type == NodeType::symlink) {
    const char* const target = archive_entry_symlink(entry);
    if (target == nullptr || *target == 0)
      return Error(ErrorCode::corrupt, fmt::format("cannot read {}: the link {} leads nowhere",
                                                   printable(name), path_text(path)));
    node.target = target;
  }
  if (type == NodeType::character_device || type == NodeType::block_device)
    node.device_number = std::uint64_t{static_cast<std::uint32_t>(archive_entry_rdevmajor(entry))} << 32 |
                         static_cast<std::uint32_t>(archive_entry_rdevminor(entry));
  add_attributes(node, path);
  return node;
}

Result<bool> ArchiveReader::State::fetch() {
  while (block.empty() && !ended) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int result = archive_read_data_block(archive, &bytes, &size, &offset);
    if (result != ARCHIVE_OK && result != ARCHIVE_EOF) return error();
    if (result == ARCHIVE_EOF) {
      ended = true;
      break;
    }
    if (offset < 0 || static_cast<std::uint64_t>(offset) < position)
      return Error(ErrorCode::corrupt,
                   fmt::format("cannot read {}: the pieces of a file overlap", printable(name)));
    block = {static_cast<const std::uint8_t*>(bytes), size};
    block_offset = static_cast<std::uint64_t>(offset);
  }
  return !block.empty();
}

ArchiveReader::ArchiveReader(int fd, std::string name, Warn warn, std::stop_token stop)
    : state_(std::make_unique<State>(fd, std::move(name), std::move(warn), std::move(stop))) {}
ArchiveReader::~ArchiveReader() = default;

Result<std::optional<SourceEntry>> ArchiveReader::next() {
  State& state = *state_;
  if (!state.opened) KIN_TRY(state.open());
  state.opened = true;
  KIN_TRY_ASSIGN(const int result, state.next_header());
  if (result == ARCHIVE_EOF) return std::optional<SourceEntry>();
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return state.error();
  state.block = {};
  state.position = 0;
  state.ended = state.any_content = false;

  archive_entry* const entry = state.entry;
  if (archive_entry_is_encrypted(entry) != 0)
    return Error(ErrorCode::unsupported, printable(state.name) + " is encrypted, which kin cannot read");
  std::optional<Utf8Locale> locale;  // in which names that are asked for are to be
  if (state.in_utf8) locale.emplace();
  const std::optional<std::string> given = state.entry_name();
  if (!given)
    return Error(ErrorCode::corrupt,
                 fmt::format("cannot read {}: an entry has no name", printable(state.name)));
  const std::string warning = text_of(archive_error_string(state.archive));
  // tar's, and that is what we want there.
  const bool unconverted = !state.in_utf8 && warning.find("can't be converted") != std::string::npos;
  if (result == ARCHIVE_WARN && !unconverted)
    state.warn(fmt::format("{}: {}", path_text(*given), printable(warning)));
  SourceEntry out;
  KIN_TRY_ASSIGN(out.path, safe_path(*given));
  if (given->starts_with('/')) ++state.absolute_names;
  const char* const target = archive_entry_hardlink(entry);
  state.is_link = target != nullptr;
  if (state.is_link) {
    KIN_TRY_ASSIGN(out.link_to, safe_path(target));
  }
  const std::optional<NodeType> type = node_type(entry);
  if (!type || (out.path.empty() && *type != NodeType::directory))
    return Error(ErrorCode::unsupported, fmt::format("{} in {} is of a kind that kin does not know",
                                                     path_text(*given), printable(state.name)));
  KIN_TRY_ASSIGN(out.node, state.describe(*type, out.path));
  return std::optional(std::move(out));
}

Result<std::optional<std::uint64_t>> ArchiveReader::next_run() {
  State& state = *state_;
  KIN_TRY_ASSIGN(const bool more, state.fetch());
  if (more) {
    state.position = state.block_offset;
    state.any_content = true;
    return std::optional(state.position);
  }
  // Only tar has holes. Elsewhere, what is missing at the end is missing.
  const bool tar = (archive_format(state.archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
  if (!tar && !state.is_link && end() != state.position)
    return Error(ErrorCode::corrupt, fmt::format("cannot read {}: {} bytes of {} are missing",
                                                 printable(state.name), end() - state.position, end()));
  return std::optional<std::uint64_t>();
}

Result<std::size_t> ArchiveReader::read(std::span<std::uint8_t> into) {
  State& state = *state_;
  std::size_t done = 0;
  while (done < into.size()) {
    KIN_TRY_ASSIGN(const bool more, state.fetch());
    if (!more || state.block_offset != state.position) break;
    const std::size_t size = std::min(into.size() - done, state.block.size());
    std::copy_n(state.block.begin(), size, into.begin() + static_cast<std::ptrdiff_t>(done));
    state.block = state.block.subspan(size);
    state.block_offset += size;
    state.position += size;
    done += size;
  }
  return done;
}

std::uint64_t ArchiveReader::end() const {
  const State& state = *state_;
  // A link may say how large the file is, and bring nothing of it.
  if (archive_entry_size_is_set(state.entry) == 0 || (state.is_link && !state.any_content))
    return state.position;
  return std::max(state.position,
                  static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(state.entry), 0)));
}

std::string ArchiveReader::format() const { return text_of(archive_format_name(state_->archive)); }
std::uint64_t ArchiveReader::absolute_names() const { return state_->absolute_names; }

}  // namespace kin::formats
