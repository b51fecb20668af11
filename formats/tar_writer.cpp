#include "formats/tar_writer.h"

#include "lib/base/check.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <cerrno>
#include <locale.h>
#include <optional>

namespace kin::formats {
namespace {

constexpr int kTarBlockBytes = 10240;  // what tar has always padded to
constexpr int kWriteBytes = 6 * kTarBlockBytes;

// libarchive takes names to be in the locale's encoding, and writes UTF-8. In a UTF-8 locale it leaves valid
// names as they are, and the others in binary with a record that says so; in the C locale every name beyond
// ASCII would get that record, of which GNU tar complains. For the calling thread and the call only.
class Utf8Locale {
 public:
  Utf8Locale()
      : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
        before_(locale_ != nullptr ? ::uselocale(locale_) : nullptr) {}
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  const locale_t locale_, before_;
};

__LA_MODE_T file_type(NodeType type) {
  switch (type) {
    case NodeType::file:
      return AE_IFREG;
    case NodeType::directory:
      return AE_IFDIR;
    case NodeType::symlink:
      return AE_IFLNK;
    case NodeType::fifo:
      return AE_IFIFO;
    case NodeType::socket:
      return AE_IFSOCK;
    case NodeType::character_device:
      return AE_IFCHR;
    case NodeType::block_device:
      return AE_IFBLK;
  }
  return AE_IFREG;
}

// The kernel's form of an ACL, as its attributes have it: a version, then entries of tag, permissions and id,
// little-endian. tar has records of its own for ACLs, and the tars restore them from there only. False if
// this is not such a thing.
bool add_acl(archive_entry* entry, int type, ByteView value) {
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t out = 0;
    for (std::size_t i = size; i-- > 0;) out = out << 8 | value[at + i];
    return out;
  };
  constexpr std::size_t kHeaderBytes = 4, kEntryBytes = 8;
  if (value.size() < kHeaderBytes || (value.size() - kHeaderBytes) % kEntryBytes != 0 || number(0, 4) != 2)
    return false;
  for (std::size_t at = kHeaderBytes; at < value.size(); at += kEntryBytes) {
    int tag = 0;
    switch (number(at, 2)) {
      case 0x01:
        tag = ARCHIVE_ENTRY_ACL_USER_OBJ;
        break;
      case 0x02:
        tag = ARCHIVE_ENTRY_ACL_USER;
        break;
      case 0x04:
        tag = ARCHIVE_ENTRY_ACL_GROUP_OBJ;
        break;
      case 0x08:
        tag = ARCHIVE_ENTRY_ACL_GROUP;
        break;
      case 0x10:
        tag = ARCHIVE_ENTRY_ACL_MASK;
        break;
      case 0x20:
        tag = ARCHIVE_ENTRY_ACL_OTHER;
        break;
      default:
        return false;
    }
    // The permission bits are rwx = 421 on both sides.
    const bool named = tag == ARCHIVE_ENTRY_ACL_USER || tag == ARCHIVE_ENTRY_ACL_GROUP;
    archive_entry_acl_add_entry(entry, type, static_cast<int>(number(at + 2, 2) & 7), tag,
                                named ? static_cast<int>(number(at + 4, 4)) : -1, nullptr);
  }
  return true;
}

void add_attribute(archive_entry* entry, const ExtendedAttribute& attribute) {
  if (attribute.name == "system.posix_acl_access" &&
      add_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, attribute.value))
    return;
  if (attribute.name == "system.posix_acl_default" &&
      add_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, attribute.value))
    return;
  archive_entry_xattr_add_entry(entry, attribute.name.c_str(), attribute.value.data(),
                                attribute.value.size());
}

}  // namespace

struct TarWriter::State {
  Write write;
  struct archive* archive = archive_write_new();
  archive_entry* entry = archive_entry_new2(archive);
  std::optional<Error> sink_error;  // of `write`; libarchive itself only knows that there was one

  ~State() {
    archive_entry_free(entry);
    // Freeing would otherwise write the archive's end, and so make a cut-off one look whole.
    archive_write_fail(archive);
    archive_write_free(archive);
  }

  Error error(std::string_view doing) const {
    if (sink_error) return *sink_error;
    const char* const text = archive_error_string(archive);
    return Error(ErrorCode::io,
                 fmt::format("{}: {}", doing, text == nullptr ? "libarchive does not say why" : text));
  }

  void describe(const Node& node, const std::string& path) {
    archive_entry_clear(entry);
    archive_entry_copy_pathname(entry, path.c_str());
    archive_entry_set_filetype(entry, file_type(node.type));
    archive_entry_set_perm(entry, node.mode);
    archive_entry_set_uid(entry, node.uid);
    archive_entry_set_gid(entry, node.gid);
    if (!node.user.empty()) archive_entry_copy_uname(entry, node.user.c_str());
    if (!node.group.empty()) archive_entry_copy_gname(entry, node.group.c_str());
    // libarchive writes half a second before 1970 as -1.5, which it alone reads as -0.5. So no fractions
    // there: all tars then read the same.
    archive_entry_set_mtime(entry, node.mtime.seconds, node.mtime.seconds < 0 ? 0 : node.mtime.nanoseconds);
    for (const ExtendedAttribute& attribute : node.attributes) add_attribute(entry, attribute);
    archive_entry_set_size(entry, static_cast<la_int64_t>(node.size));
    if (node.type == NodeType::symlink) archive_entry_copy_symlink(entry, node.target.c_str());
    if (node.type == NodeType::character_device || node.type == NodeType::block_device) {
      archive_entry_set_rdevmajor(entry, node.device_number >> 32);
      archive_entry_set_rdevminor(entry, node.device_number & 0xffffffff);
    }
  }

  Result<void> write_header(const std::string& path) {
    const Utf8Locale locale;
    // A warning says that a name had to be written in binary: that is what we want then.
    if (archive_write_header(archive, entry) < ARCHIVE_WARN)
      return error("cannot put " + printable(path) + " into the archive");
    return {};
  }
};

TarWriter::TarWriter(Write write) : state_(std::make_unique<State>()) {
  state_->write = std::move(write);
  struct archive* const archive = state_->archive;
  KIN_CHECK(archive != nullptr && state_->entry != nullptr);
  KIN_CHECK(archive_write_set_format_pax(archive) == ARCHIVE_OK);
  // Its own form of attributes besides would only take room.
  KIN_CHECK(archive_write_set_format_option(archive, "pax", "xattrheader", "SCHILY") == ARCHIVE_OK);
  archive_write_set_bytes_per_block(archive, kWriteBytes);
  archive_write_set_bytes_in_last_block(archive, kTarBlockBytes);
  const auto write_callback = [](struct archive* failed, void* context, const void* bytes,
                                 std::size_t size) -> la_ssize_t {
    State& state = *static_cast<State*>(context);
    if (auto written = state.write({static_cast<const std::uint8_t*>(bytes), size}); !written) {
      state.sink_error = std::move(written).error();
      archive_set_error(failed, EIO, "%s", state.sink_error->message().c_str());
      return -1;
    }
    return static_cast<la_ssize_t>(size);
  };
  KIN_CHECK(archive_write_open(archive, state_.get(), nullptr, write_callback, nullptr) == ARCHIVE_OK);
}

TarWriter::~TarWriter() = default;

Result<void> TarWriter::add(const Node& node, const std::string& path) {
  if (node.type == NodeType::socket)
    return Error(ErrorCode::unsupported, printable(path) + " is a socket, and tar has none");
  state_->describe(node, path);
  return state_->write_header(path);
}

Result<void> TarWriter::add_sparse(const Node& node, const std::string& path,
                                   const std::vector<DataRange>& data) {
  state_->describe(node, path);
  for (const DataRange& range : data)
    archive_entry_sparse_add_entry(state_->entry, static_cast<la_int64_t>(range.offset),
                                   static_cast<la_int64_t>(range.size));
  if (data.empty()) archive_entry_sparse_add_entry(state_->entry, 0, 0);  // none would mean: not sparse
  return state_->write_header(path);
}

Result<void> TarWriter::add_link(const Node& node, const std::string& path, const std::string& earlier_path) {
  state_->describe(node, path);
  archive_entry_copy_hardlink(state_->entry, earlier_path.c_str());
  archive_entry_set_size(state_->entry, 0);
  return state_->write_header(path);
}

Result<void> TarWriter::write(ByteView content) {
  while (!content.empty()) {
    const la_ssize_t n = archive_write_data(state_->archive, content.data(), content.size());
    if (n < 0) return state_->error("cannot write the archive");
    if (n == 0) return Error(ErrorCode::invalid_argument, "a file has more bytes than its entry says");
    content = content.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> TarWriter::finish() {
  if (archive_write_close(state_->archive) != ARCHIVE_OK) return state_->error("cannot write the archive");
  return {};
}

}  // namespace kin::formats
