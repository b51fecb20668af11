// A message (RFC 5322) and its parts (RFC 2045, 2046), multiparts within multiparts: what is encoded in
// base64 or quoted-printable is decoded, so that an attachment is what the file was. The text between, and
// all headers, are kept as they are.
//
// Most mail has nothing that pays: small messages compress well together as they are, and each one that is
// opened takes a recipe. So a message opens for the sake of base64, or of a long part in quoted-printable,
// and is refused otherwise. SpamAssassin's 6,046 messages take 7.28 MB closed, 7.20 opened for base64 alone,
// and 7.18 with parts of 16 KiB in quoted-printable; with those of 4 KiB, 7.22. (Means of three repositories:
// their keys make a percent.)
#include "formats/base64.h"
#include "formats/formats.h"
#include "formats/lines_until.h"
#include "formats/mail_header.h"
#include "formats/quoted_printable.h"

#include <optional>
#include <string>
#include <vector>

namespace kin::formats {
namespace mime {
namespace {

constexpr std::size_t kMostHeaderBytes = 64 << 10;
constexpr std::size_t kMostNesting = 32;
constexpr std::size_t kMostDelimiter = 512;  // the line, with white space behind it
// Parts smaller than this cost more to be objects of their own than it can give: base64 in characters.
constexpr std::size_t kLeastBase64 = 88;
constexpr std::size_t kLeastQuoted = 4 << 10;
// What a message must have to be opened.
constexpr std::uint64_t kWorthBase64 = 512;
constexpr std::uint64_t kWorthQuoted = 16 << 10;
// Longer ones are no text that people wrote.
constexpr std::size_t kMostQuoted = 4 << 20;

// Delimiters of the multiparts that a place is in, the outermost first.
class Boundaries {
 public:
  struct Match {
    std::size_t index;
    bool closes;
    std::size_t size;  // of the line, with its end
  };

  // The line at the front of `text`.
  std::optional<Match> match(std::string_view text) const {
    if (!text.starts_with("--")) return std::nullopt;
    const std::size_t end = text.substr(0, kMostDelimiter).find('\n');
    if (end == std::string_view::npos && text.size() > kMostDelimiter) return std::nullopt;
    std::string_view line = text.substr(2, end == std::string_view::npos ? end : end - 2);
    const std::size_t size = line.size() + 2 + (end == std::string_view::npos ? 0 : 1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.remove_suffix(1);
    for (std::size_t i = all_.size(); i-- > 0;) {
      if (!line.starts_with(all_[i])) continue;
      const std::string_view behind = line.substr(all_[i].size());
      if (behind.empty() || behind == "--") return Match{i, !behind.empty(), size};
    }
    return std::nullopt;
  }

  // The next delimiter, with the line end in front of it, which is its own (RFC 2046).
  LinesFound find(ByteView bytes, bool at_line_start, bool is_all) const {
    const std::string_view text = as_text(bytes);
    if (all_.empty()) return {text.size(), false};
    if (at_line_start && match(text)) return {0, true};
    std::size_t at = 0;
    for (;;) {
      at = text.find("\n--", at);
      if (at == std::string_view::npos) break;
      const std::size_t before = at > 0 && text[at - 1] == '\r' ? at - 1 : at;
      if (!is_all && text.size() - at <= kMostDelimiter) return {before, false};
      if (match(text.substr(at + 1))) return {before, true};
      ++at;
    }
    // The beginning of one may be the last that is seen.
    return {is_all ? text.size() : text.size() - std::string_view("\r\n--").size(), false};
  }

  bool push(const std::string& boundary) {
    if (all_.size() == kMostNesting) return false;
    all_.push_back(boundary);
    return true;
  }
  void keep(std::size_t count) { all_.resize(count); }

 private:
  std::vector<std::string> all_;
};

class Message {
 public:
  Message(PeekSource& in, PartSink& out, const ContainerLimits& limits)
      : in_(in), out_(out), limits_(limits) {}

  Result<void> run() {
    KIN_TRY(header());
    for (;;) {
      KIN_TRY(body());
      KIN_TRY_ASSIGN(const ByteView rest, in_.peek(1));
      if (rest.empty()) break;
      KIN_TRY(delimiter());
    }
    // What is too large to be tried in memory must not fail now, or the container around it would.
    const bool pays = base64_bytes_ >= kWorthBase64 || longest_quoted_ >= kWorthQuoted;
    if (!pays && in_.position() < limits_.memory_bytes)
      return Error(ErrorCode::unsupported, "a message without parts that pay to decode");
    return {};
  }

 private:
  Result<void> take_literal(std::size_t size) {
    KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(size));
    KIN_TRY(out_.literal(bytes));
    in_.skip(bytes.size());
    return {};
  }

  // The header, up to an empty line; and those of messages that are the body.
  Result<void> header() {
    do {
      KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(kMostHeaderBytes));
      const std::size_t size = header_size(as_text(bytes));
      part_ = read_mail_header(as_text(bytes.first(size)));
      // Of one that has no end in sight, the rest is a body like any other.
      at_line_start_ = size == 0 || bytes[size - 1] == '\n';
      KIN_TRY(take_literal(size));
      if (size == 0) return {};
      if (part_.body == MailHeader::Body::multipart && boundaries_.push(part_.boundary))
        part_.encoding = MailHeader::Encoding::none;
    } while (part_.body == MailHeader::Body::message && part_.encoding == MailHeader::Encoding::none);
    return {};
  }

  std::size_t header_size(std::string_view text) const {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::string_view line = text.substr(at);
      if (line.starts_with("\n")) return at + 1;
      if (line.starts_with("\r\n")) return at + 2;
      if (boundaries_.match(line)) return at;
      const std::size_t end = line.find('\n');
      if (end == std::string_view::npos) break;
      at += end + 1;
    }
    return text.size();
  }

  // To the next delimiter, or to the end.
  Result<void> body() {
    if (part_.encoding == MailHeader::Encoding::base64) KIN_TRY(base64());
    if (part_.encoding == MailHeader::Encoding::quoted_printable) return quoted_printable();
    return as_it_is();
  }

  LinesUntil rest_of_part() {
    return LinesUntil(
        in_,
        [this](ByteView text, bool at_line_start, bool is_all) {
          return boundaries_.find(text, at_line_start, is_all);
        },
        at_line_start_);
  }

  // What follows the base64 is not.
  Result<void> base64() {
    for (;;) {
      KIN_TRY_ASSIGN(const ByteView next, in_.peek(2));
      if (!at_line_start_ || next.empty() || !(next[0] == '\n' || as_text(next) == "\r\n")) break;
      KIN_TRY(take_literal(next[0] == '\n' ? 1 : 2));
    }
    KIN_TRY_ASSIGN(const bool begins, Base64Member::begins(in_, kLeastBase64));
    if (!begins || !at_line_start_) return {};
    Base64Member member(in_);
    KIN_TRY(out_.coded_member(CodingId::base64, part_.name, member));
    base64_bytes_ += member.encoded_bytes();
    at_line_start_ = member.ended_with_line();
    part_.name.clear();
    return {};
  }

  Result<void> quoted_printable() {
    LinesUntil source = rest_of_part();
    Bytes text;
    const std::size_t most = std::min(limits_.memory_bytes, kMostQuoted);
    for (std::size_t have = 0; have < most;) {
      text.resize(std::min(most, have + LinesUntil::kLookBytes));
      KIN_TRY_ASSIGN(const std::size_t got, source.read(std::span(text).subspan(have)));
      const bool ended = have + got < text.size();
      have += got;
      text.resize(have);
      if (ended) break;
    }
    std::optional<QuotedPrintableMember> member;
    if (text.size() >= kLeastQuoted && text.size() < most) {
      KIN_TRY_ASSIGN(member, QuotedPrintableMember::open(text));
    }
    if (!member) {
      in_.give_back(text);
      return as_it_is();
    }
    at_line_start_ = source.at_line_start();
    longest_quoted_ = std::max<std::uint64_t>(longest_quoted_, text.size());
    return out_.coded_member(CodingId::quoted_printable, part_.name, *member);
  }

  // A long body is a member, so that it is cut where its content says.
  Result<void> as_it_is() {
    KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(LinesUntil::kLookBytes));
    const bool is_all = bytes.size() < LinesUntil::kLookBytes;
    const LinesFound found = boundaries_.find(bytes, at_line_start_, is_all);
    if (found.ends || is_all) {
      if (found.size > 0) at_line_start_ = bytes[found.size - 1] == '\n';
      return take_literal(found.size);
    }
    LinesUntil rest = rest_of_part();
    KIN_TRY(out_.member(part_.name, rest));
    at_line_start_ = rest.at_line_start();
    return {};
  }

  // And the header behind it, if a part follows.
  Result<void> delimiter() {
    KIN_TRY_ASSIGN(const ByteView bytes, in_.peek(2 + kMostDelimiter));
    const std::string_view text = as_text(bytes);
    const std::size_t line_end = text.starts_with("\r\n") ? 2 : text.starts_with("\n") ? 1 : 0;
    const auto match = boundaries_.match(text.substr(line_end));
    if (!match) return Error(ErrorCode::unsupported, "a part of a message ends where nothing ends it");
    KIN_TRY(take_literal(line_end + match->size));
    boundaries_.keep(match->index + (match->closes ? 0 : 1));
    at_line_start_ = true;
    part_ = {};
    return match->closes ? Result<void>() : header();
  }

  PeekSource& in_;
  PartSink& out_;
  const ContainerLimits& limits_;
  Boundaries boundaries_;
  MailHeader part_;
  bool at_line_start_ = true;
  std::uint64_t base64_bytes_ = 0, longest_quoted_ = 0;
};

Result<void> open(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  return Message(in, out, limits).run();
}

}  // namespace
}  // namespace mime

const ContainerFormat kMime = {"mime", may_be_encoded_mail, mime::open};

}  // namespace kin::formats
