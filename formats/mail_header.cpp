#include "formats/mail_header.h"

#include "lib/container/container_format.h"

#include <algorithm>
#include <optional>

namespace kin::formats {
namespace mail {
namespace {

constexpr std::size_t kMostFieldName = 76;
constexpr std::size_t kMostBoundary = 200;  // RFC 2046 says 70
constexpr std::size_t kMostName = 255;

// Fields that messages have and hardly anything else; and those that others have too.
constexpr std::string_view kStrong[] = {"from",    "received",     "return-path",  "message-id",
                                        "subject", "mime-version", "delivered-to", "reply-to"};
constexpr std::string_view kWeak[] = {
    "to",     "cc",         "date",        "content-type",  "content-transfer-encoding",
    "sender", "references", "in-reply-to", "dkim-signature"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The first line, with its end; `text` goes on behind it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
  text.remove_prefix(line.size());
  return line;
}

bool is_fold(std::string_view line) { return !line.empty() && (line[0] == ' ' || line[0] == '\t'); }

std::optional<std::string_view> field_name(std::string_view line) {
  const std::size_t size = line.substr(0, kMostFieldName + 1).find(':');
  if (size == std::string_view::npos || size == 0) return std::nullopt;
  const std::string_view out = line.substr(0, size);
  const bool printable = std::all_of(out.begin(), out.end(), [](char c) { return c > ' ' && c < 127; });
  return printable ? std::optional(out) : std::nullopt;
}

// A field's value, with its folded lines.
std::string_view take_value(std::string_view line, std::size_t name_size, std::string_view& text) {
  const char* const begin = line.data() + name_size + 1;
  while (is_fold(text)) line = take_line(text);
  return trimmed({begin, static_cast<std::size_t>(line.data() + line.size() - begin)});
}

// A value up to its parameters, in lower case.
std::string kind_of(std::string_view value) {
  return lower(trimmed(value.substr(0, value.find_first_of("; \t\r\n("))));
}

std::string parameter(std::string_view value, std::string_view wanted) {
  while (true) {
    const std::size_t next = value.find(';');
    if (next == std::string_view::npos) return {};
    value = trimmed(value.substr(next + 1));
    const std::size_t equals = value.find_first_of("=;");
    if (equals == std::string_view::npos) return {};
    if (value[equals] == ';') continue;
    const std::string name = lower(trimmed(value.substr(0, equals)));
    value = trimmed(value.substr(equals + 1));
    std::string out;
    if (value.starts_with('"')) {
      std::size_t at = 1;
      for (; at < value.size() && value[at] != '"'; ++at) {
        if (value[at] == '\\' && at + 1 < value.size()) ++at;
        out += value[at];
      }
      value.remove_prefix(at);
    } else {
      out = value.substr(0, value.find_first_of("; \t\r\n"));
      value.remove_prefix(out.size());
    }
    if (name == wanted) return out;
  }
}

std::string shown(std::string text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127; });
  return plain && text.size() <= kMostName ? std::move(text) : std::string();
}

bool contains_in_lower_case(std::string_view text, std::string_view wanted) {
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace
}  // namespace mail

bool is_mail_field(std::string_view line) { return mail::field_name(line).has_value(); }

MailHeader read_mail_header(std::string_view header) {
  MailHeader out;
  while (!header.empty()) {
    const std::string_view line = mail::take_line(header);
    const std::optional<std::string_view> field = mail::field_name(line);
    if (!field) continue;
    const std::string_view value = mail::take_value(line, field->size(), header);
    const std::string name = mail::lower(*field);
    if (name == "content-type") {
      const std::string kind = mail::kind_of(value);
      if (kind.starts_with("multipart/")) out.boundary = mail::parameter(value, "boundary");
      if (!out.boundary.empty() && out.boundary.size() <= mail::kMostBoundary)
        out.body = MailHeader::Body::multipart;
      if (kind == "message/rfc822") out.body = MailHeader::Body::message;
      if (out.name.empty()) out.name = mail::shown(mail::parameter(value, "name"));
    } else if (name == "content-transfer-encoding") {
      const std::string kind = mail::kind_of(value);
      if (kind == "base64") out.encoding = MailHeader::Encoding::base64;
      if (kind == "quoted-printable") out.encoding = MailHeader::Encoding::quoted_printable;
    } else if (name == "content-disposition") {
      if (std::string file = mail::shown(mail::parameter(value, "filename")); !file.empty())
        out.name = std::move(file);
    }
  }
  return out;
}

bool may_be_encoded_mail(ByteView head) {
  const bool is_all = head.size() < kHeadBytes;
  const std::string_view text = as_text(head);
  std::string_view rest = text;
  std::size_t strong = 0, known = 0;
  bool ended = false;
  for (bool first = true; !rest.empty(); first = false) {
    const std::string_view line = mail::take_line(rest);
    if (!is_all && rest.empty()) break;  // cut off
    ended = mail::trimmed(line).empty() && !mail::is_fold(line);
    if (ended) break;
    if (line.find('\0') != std::string_view::npos) return false;
    if (mail::is_fold(line) && !first) continue;
    const std::optional<std::string_view> field = mail::field_name(line);
    if (!field) return false;
    const std::string name = mail::lower(*field);
    const auto is_in = [&](const auto& list) {
      return std::find(std::begin(list), std::end(list), name) != std::end(list);
    };
    strong += is_in(mail::kStrong);
    known +=
        is_in(mail::kStrong) || is_in(mail::kWeak) || name.starts_with("x-") || name.starts_with("list-");
  }
  if (strong < 2 || known < 3) return false;
  // One that is seen as a whole has no parts of any size but those of base64.
  if (is_all) return mail::contains_in_lower_case(text, "base64");
  if (!ended) return true;
  const MailHeader header = read_mail_header(text.substr(0, text.size() - rest.size()));
  return header.body != MailHeader::Body::other || header.encoding != MailHeader::Encoding::none;
}

}  // namespace kin::formats
