// Unix ar: static libraries and Debian packages. A header of 60 characters and the content it announces, each
// on an even offset. Names that do not fit into a header stand in a member of their own (GNU) or in front of
// the content (BSD).
#include "formats/fields.h"
#include "formats/formats.h"
#include "formats/parts.h"

#include <optional>
#include <string>

namespace kin::formats {
namespace {

constexpr std::string_view kArMagic = "!<arch>\n";
constexpr std::size_t kArHeaderBytes = 60;
constexpr std::uint64_t kMostArName = 4096;
// Of GNU's table of long names; of a longer one, members have no names.
constexpr std::uint64_t kMostArTable = 1 << 20;

struct ArHeader {
  std::string name;  // as it stands there, without the spaces behind it
  std::uint64_t size;
};

std::optional<ArHeader> read_ar_header(ByteView head) {
  if (head.size() < kArHeaderBytes || as_text(head.subspan(58, 2)) != "`\n") return std::nullopt;
  const std::optional<std::uint64_t> size = digits(head.subspan(48, 10), 10);
  if (!size) return std::nullopt;
  const std::string_view name = as_text(head.first(16));
  return ArHeader{std::string(name.substr(0, name.find_last_not_of(' ') + 1)), *size};
}

bool is_ar(ByteView head) {
  return as_text(head).starts_with(kArMagic) && read_ar_header(head.subspan(kArMagic.size()));
}

class Ar {
 public:
  Ar(PeekSource& in, PartSink& out) : in_(in), out_(out) {}

  Result<void> run() {
    KIN_TRY(take_literal(in_, out_, kArMagic.size()));
    for (;;) {
      KIN_TRY_ASSIGN(const ByteView head, in_.peek(kArHeaderBytes));
      if (head.empty()) return {};
      const std::optional<ArHeader> header = read_ar_header(head);
      if (!header) return take_rest(in_, out_);
      KIN_TRY(take_literal(in_, out_, kArHeaderBytes));
      KIN_TRY(member(*header));
      if (header->size % 2 == 1) KIN_TRY(padding());
    }
  }

 private:
  Result<void> member(const ArHeader& header) {
    if (header.name == "//") KIN_TRY(read_table(header.size));
    if (header.name.starts_with('/') && !is_reference(header.name))  // tables: of symbols, of names
      return take_gap(in_, out_, header.size);
    std::string name = header.name;
    std::uint64_t size = header.size;
    if (name.starts_with("#1/")) {
      const auto name_size = digits(as_bytes(name).subspan(3), 10);
      if (!name_size || *name_size > kMostArName || *name_size > size)
        return take_gap(in_, out_, header.size);
      KIN_TRY_ASSIGN(const ByteView long_name, in_.peek(static_cast<std::size_t>(*name_size)));
      name = text_in(long_name);
      KIN_TRY(take_literal(in_, out_, static_cast<std::size_t>(*name_size)));
      size -= *name_size;
    } else if (name.starts_with('/')) {
      name = long_name(name);
    } else if (name.ends_with('/')) {
      name.pop_back();
    }
    if (size == 0) return {};
    LimitedSource content(in_, size);
    return out_.member(name, content);
  }

  Result<void> read_table(std::uint64_t size) {
    if (size > kMostArTable) return {};
    KIN_TRY_ASSIGN(const ByteView table, in_.peek(static_cast<std::size_t>(size)));
    long_names_ = as_text(table);
    return {};
  }

  // A slash, and where in the table the name begins.
  static bool is_reference(std::string_view name) {
    return digits(as_bytes(name).subspan(1), 10).has_value();
  }

  std::string long_name(std::string_view reference) const {
    const std::uint64_t at = digits(as_bytes(reference).subspan(1), 10).value_or(long_names_.size());
    if (at >= long_names_.size()) return "";
    const std::string_view rest = std::string_view(long_names_).substr(static_cast<std::size_t>(at));
    std::string_view name = rest.substr(0, std::min<std::size_t>(rest.find('\n'), kMostArName));
    if (name.ends_with('/')) name.remove_suffix(1);
    return std::string(name);
  }

  // Not every program writes it.
  Result<void> padding() {
    KIN_TRY_ASSIGN(const ByteView next, in_.peek(1));
    const bool is_padding = !next.empty() && next[0] == '\n';
    return is_padding ? take_literal(in_, out_, 1) : Result<void>();
  }

  PeekSource& in_;
  PartSink& out_;
  std::string long_names_;
};

Result<void> open_ar(PeekSource& in, PartSink& out, const ContainerLimits&) { return Ar(in, out).run(); }

}  // namespace

const ContainerFormat kAr = {"ar", is_ar, open_ar};

}  // namespace kin::formats
