#include "formats/archive_writer.h"

#include "formats/utf8_locale.h"
#include "lib/base/check.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <cerrno>
#include <map>
#include <optional>

namespace kin::formats {
namespace {

constexpr int kTarBlockBytes = 10240;  // what tar has always padded to
constexpr int kWriteBytes = 6 * kTarBlockBytes;

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

struct ArchiveWriter::State {
  const ArchiveForm& form;
  Write write;
  struct archive* archive = archive_write_new();
  archive_entry* entry = archive_entry_new2(archive);
  std::optional<Error> sink_error;  // of `write`; libarchive itself only knows that there was one
  // Forms that tell links by number have 32 bits for it, so entries are counted: those of files with several
  // names, by path.
  std::map<std::string, std::uint32_t> numbers;
  std::uint32_t last_number = 0;

  State(const ArchiveForm& form_of, Write write_to) : form(form_of), write(std::move(write_to)) {}
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
    if (form.attributes)
      for (const ExtendedAttribute& attribute : node.attributes) add_attribute(entry, attribute);
    archive_entry_set_size(entry, static_cast<la_int64_t>(node.size));
    if (node.type == NodeType::symlink) archive_entry_copy_symlink(entry, node.target.c_str());
    if (node.type == NodeType::character_device || node.type == NodeType::block_device) {
      archive_entry_set_rdevmajor(entry, node.device_number >> 32);
      archive_entry_set_rdevminor(entry, node.device_number & 0xffffffff);
    }
    if (form.links == ArchiveForm::Links::by_inode && node.type != NodeType::directory) {
      const bool linked = node.links > 1;
      set_number(linked ? numbers.try_emplace(path, last_number + 1).first->second : last_number + 1, linked);
      ++last_number;
    }
  }

  void set_number(std::uint32_t number, bool linked) {
    archive_entry_set_ino(entry, number);
    archive_entry_set_nlink(entry, linked ? 2 : 1);  // more would mean no more
  }

  Result<void> write_header(const std::string& path) {
    // In the C locale every name beyond ASCII would get a record that says so, of which GNU tar complains.
    const Utf8Locale locale;
    // A warning says that a name had to be written in binary: that is what we want then.
    if (archive_write_header(archive, entry) < ARCHIVE_WARN)
      return error("cannot put " + printable(path) + " into the archive");
    return {};
  }
};

ArchiveWriter::ArchiveWriter(const ArchiveKind& kind, Write write)
    : state_(std::make_unique<State>(*kind.form, std::move(write))) {
  struct archive* const archive = state_->archive;
  KIN_CHECK(archive != nullptr && state_->entry != nullptr);
  KIN_CHECK(archive_write_set_format_by_name(archive, kind.form->writer_name) == ARCHIVE_OK);
  const bool tar = kind.form == &tar_form();
  // Its own form of attributes besides would only take room.
  if (tar) KIN_CHECK(archive_write_set_format_option(archive, "pax", "xattrheader", "SCHILY") == ARCHIVE_OK);
  if (kind.compression != nullptr) {
    KIN_CHECK(archive_write_add_filter_by_name(archive, kind.compression) == ARCHIVE_OK);
    // Where there is such an option: else two archives of the same would differ by the time of the day.
    archive_write_set_filter_option(archive, nullptr, "timestamp", nullptr);
  }
  archive_write_set_bytes_per_block(archive, kWriteBytes);
  // Behind what is compressed, padding would be garbage.
  archive_write_set_bytes_in_last_block(archive, tar && kind.compression == nullptr ? kTarBlockBytes : 1);
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

ArchiveWriter::~ArchiveWriter() = default;

Result<void> ArchiveWriter::add(const Node& node, const std::string& path) {
  const bool ordinary =
      node.type == NodeType::file || node.type == NodeType::directory || node.type == NodeType::symlink;
  if (node.type == NodeType::socket || (!ordinary && !state_->form.special_files))
    return Error(ErrorCode::unsupported, fmt::format("{} is a {}, and {} has none", printable(path),
                                                     name_of(node.type), state_->form.name));
  state_->describe(node, path);
  return state_->write_header(path);
}

Result<void> ArchiveWriter::add_sparse(const Node& node, const std::string& path,
                                       const std::vector<DataRange>& data) {
  if (!state_->form.holes) return add(node, path);
  state_->describe(node, path);
  for (const DataRange& range : data)
    archive_entry_sparse_add_entry(state_->entry, static_cast<la_int64_t>(range.offset),
                                   static_cast<la_int64_t>(range.size));
  if (data.empty()) archive_entry_sparse_add_entry(state_->entry, 0, 0);  // none would mean: not sparse
  return state_->write_header(path);
}

Result<void> ArchiveWriter::add_link(const Node& node, const std::string& path,
                                     const std::string& earlier_path) {
  KIN_CHECK(state_->form.links != ArchiveForm::Links::none);
  state_->describe(node, path);
  archive_entry_copy_hardlink(state_->entry, earlier_path.c_str());
  if (const auto at = state_->numbers.find(earlier_path); at != state_->numbers.end())
    state_->set_number(at->second, true);
  archive_entry_set_size(state_->entry, 0);
  return state_->write_header(path);
}

Result<void> ArchiveWriter::write(ByteView content) {
  while (!content.empty()) {
    const la_ssize_t n = archive_write_data(state_->archive, content.data(), content.size());
    if (n < 0) return state_->error("cannot write the archive");
    if (n == 0) return Error(ErrorCode::invalid_argument, "a file has more bytes than its entry says");
    content = content.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> ArchiveWriter::finish() {
  if (archive_write_close(state_->archive) != ARCHIVE_OK) return state_->error("cannot write the archive");
  return {};
}

}  // namespace kin::formats
