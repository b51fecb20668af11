#include "lib/sync/mbox_message.h"

#include "lib/sync/item.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kin::sync::mbox {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kKept = "X-Kin-Kept-";
constexpr std::string_view kForwarded = "$Forwarded";

enum class Field { other, status, x_status, keywords, numbers, file_numbers, quoted };

struct FieldName {
  std::string_view name;
  Field field;
};
constexpr FieldName kOwnFields[] = {
    {"status", Field::status},          {"x-status", Field::x_status},   {"x-keywords", Field::keywords},
    {"x-uid", Field::numbers},          {"x-imap", Field::file_numbers}, {"x-imapbase", Field::file_numbers},
    {"content-length", Field::numbers}, {"x-kin-quoted", Field::quoted},
};

Field field_of(std::string_view field) {
  constexpr std::size_t kMostName = 64;
  std::string_view name = field.substr(0, field.substr(0, kMostName).find(':'));
  if (name.size() == field.size() || field[name.size()] != ':') return Field::other;
  name = name.substr(0, name.find_last_not_of(" \t") + 1);
  const auto equal_name = [&](std::string_view own) {
    return std::equal(name.begin(), name.end(), own.begin(), own.end(), [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + ('a' - 'A')) : a) == b;
    });
  };
  for (const FieldName& own : kOwnFields)
    if (equal_name(own.name)) return own.field;
  return Field::other;
}

// Calls on_field(Field, text) for each, with its continuation lines and line ends; returns where the header
// ends.
template <class OnField>
std::size_t walk_header(std::string_view message, const OnField& on_field) {
  std::size_t at = 0;
  while (at < message.size()) {
    const std::string_view rest = message.substr(at);
    if (rest.starts_with('\n') || rest.starts_with("\r\n")) return at;
    std::size_t end = std::min(message.find('\n', at), message.size() - 1) + 1;
    while (end < message.size() && (message[end] == ' ' || message[end] == '\t'))
      end = std::min(message.find('\n', end), message.size() - 1) + 1;
    on_field(field_of(message.substr(at, end - at)), message.substr(at, end - at));
    at = end;
  }
  return at;
}

// Every line ">>>From " gets one ">" more, or loses one if it has any.
template <bool kAdd>
std::string change_quotes(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    const std::size_t quotes = std::min(line.find_first_not_of('>'), line.size());
    const bool is_from = line.substr(quotes).starts_with(kEnvelopeStart);
    if (kAdd && is_from) out += '>';
    out += !kAdd && is_from && quotes > 0 ? line.substr(1) : line;
    text.remove_prefix(line.size());
  }
  return out;
}

bool has_from_line(std::string_view text) {
  return text.starts_with(kEnvelopeStart) || text.find("\nFrom ") != std::string_view::npos;
}

std::string_view header_line_end(std::string_view header, std::string_view otherwise) {
  if (!header.ends_with('\n')) return otherwise;
  return header.ends_with("\r\n") ? "\r\n" : "\n";
}

constexpr std::array<std::pair<char, Flag>, 4> kLetters = {
    {{'A', kReplied}, {'F', kFlagged}, {'T', kDraft}, {'D', kTrashed}}};

std::string letters_of(std::uint8_t flags) {
  std::string out;
  for (const auto& [letter, flag] : kLetters)
    if ((flags & flag) != 0) out += letter;
  return out;
}

std::string keywords_of(const Marks& marks) {
  std::string out;
  for (const std::string& word : marks.words) out.append(out.empty() ? "" : " ").append(word);
  if ((marks.flags & kPassed) != 0) out.append(out.empty() ? "" : " ").append(kForwarded);
  return out;
}

// The field without these letters in its value; empty if nothing is left of that.
std::string without_letters(std::string_view field, std::string_view letters) {
  const std::size_t value = field.find(':') + 1;
  std::string out(field.substr(0, value));
  for (const char c : field.substr(value))
    if (letters.find(c) == std::string_view::npos) out += c;
  if (out.size() == field.size()) return out;
  return out.find_first_not_of(kSpace, value) == std::string::npos ? std::string() : out;
}

// In front of the letters that are there, or behind them.
void add_letters(std::string& field, std::string_view letters, bool in_front) {
  const std::size_t value = field.find(':') + 1;
  const std::size_t first = field.find_first_not_of(kSpace, value), last = field.find_last_not_of(kSpace);
  if (first == std::string::npos) {
    field.insert(value, " ").insert(value + 1, letters);
  } else {
    field.insert(in_front ? first : last + 1, letters);
  }
}

void add_field(std::string& out, std::string_view name, std::string_view value, std::string_view line_end) {
  if (!value.empty()) out.append(name).append(": ").append(value).append(line_end);
}

Bytes to_bytes(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::string_view value_of_field(std::string_view field) { return field.substr(field.find(':') + 1); }

void for_each_field(std::string_view message,
                    const std::function<void(std::string_view name, std::string_view field)>& on_field) {
  constexpr std::size_t kMostName = 64;
  walk_header(message, [&](Field, std::string_view field) {
    const std::size_t colon = field.substr(0, kMostName).find(':');
    if (colon == std::string_view::npos) return;
    std::string name(field.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    on_field(name, field);
  });
}

Marks make_marks(std::uint8_t flags, std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  if (std::erase(words, kForwarded) > 0) flags |= kPassed;
  return {flags, std::move(words)};
}

Bytes content_of(ByteView message) {
  const std::string_view text = as_text(message);
  std::string_view quoted;  // the last one counts: a reader of mail may have put others before it
  walk_header(text, [&](Field field, std::string_view line) {
    if (field == Field::quoted) quoted = value_of_field(line);
  });
  const std::vector<std::string_view> values = split_words(quoted, 2);
  const bool drops_end = values.size() == 1 && values[0] == "2";
  const bool is_quoted = drops_end || (values.size() == 1 && values[0] == "1");
  std::string out;
  out.reserve(text.size());
  const std::size_t header = walk_header(text, [&](Field field, std::string_view line) {
    if (field == Field::other) out += is_quoted && line.starts_with(kKept) ? line.substr(kKept.size()) : line;
  });
  out += text.substr(header);
  if (is_quoted) out = change_quotes<false>(out);
  if (drops_end && out.ends_with('\n')) out.pop_back();
  return to_bytes(out);
}

Marks marks_of(ByteView message) {
  std::uint8_t flags = 0;
  std::vector<std::string> words;
  walk_header(as_text(message), [&](Field field, std::string_view line) {
    const std::string_view value = value_of_field(line);
    if (field == Field::status && value.find('R') != std::string_view::npos) flags |= kSeen;
    if (field == Field::x_status)
      for (const auto& [letter, flag] : kLetters)
        if (value.find(letter) != std::string_view::npos) flags |= flag;
    if (field == Field::keywords)
      for (const std::string_view word : split_words(value, kMostWords - words.size()))
        if (word.size() <= kMostWordBytes && word.find('\0') == std::string_view::npos)
          words.emplace_back(word);
  });
  return make_marks(flags, std::move(words));
}

Bytes with_marks(ByteView message, const Marks& marks, std::string_view line_end) {
  const std::string_view text = as_text(message);
  const Marks before = marks_of(message);
  const std::uint8_t gone = before.flags & ~marks.flags, come = marks.flags & ~before.flags;
  const std::string keywords = keywords_of(marks);
  const bool same_keywords = keywords == keywords_of(before);
  // What is still to be put somewhere: in the first field of its name, or in one of its own at the end.
  std::string seen = (come & kSeen) != 0 ? "R" : "", letters = letters_of(come),
              words = same_keywords ? "" : keywords;
  std::string out;
  const std::size_t header = walk_header(text, [&](Field field, std::string_view line) {
    std::string changed(line);
    if (field == Field::status) {
      if (!seen.empty()) add_letters(changed, std::exchange(seen, ""), true);
      if ((gone & kSeen) != 0) changed = without_letters(changed, "R");
    } else if (field == Field::x_status) {
      if (!letters.empty()) add_letters(changed, std::exchange(letters, ""), false);
      changed = without_letters(changed, letters_of(gone));
    } else if (field == Field::keywords && !same_keywords) {
      changed.clear();
      add_field(changed, line.substr(0, line.find(':')), std::exchange(words, ""),
                header_line_end(line, line_end));
    }
    out += changed;
  });
  const std::string_view own_end = header_line_end(text.substr(0, header), line_end);
  add_field(out, "Status", seen.empty() ? "" : "RO", own_end);
  add_field(out, "X-Status", letters, own_end);
  add_field(out, "X-Keywords", words, own_end);
  out += text.substr(header);
  return to_bytes(out);
}

Bytes file_fields_of(ByteView message) {
  std::string out;
  walk_header(as_text(message), [&](Field field, std::string_view line) {
    if (field == Field::file_numbers && line.ends_with('\n')) out += line;
  });
  return to_bytes(out);
}

Bytes with_fields(ByteView message, ByteView fields) {
  const std::size_t header = walk_header(as_text(message), [](Field, std::string_view) {});
  Bytes out(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(header));
  append(out, fields);
  append(out, message.subspan(header));
  return out;
}

std::optional<Bytes> make_message(ByteView content, const Marks& marks, std::string_view line_end) {
  const std::string_view text = as_text(content);
  const bool lacks_end = !text.empty() && !text.ends_with('\n');
  // Lines that other programs would take for an envelope are quoted, even where we would not.
  for (int quoted = lacks_end ? 2 : has_from_line(text) ? 1 : 0; quoted <= 2; ++quoted) {
    std::string plain;
    const std::size_t header = walk_header(text, [&](Field field, std::string_view line) {
      if (quoted > 0 && (field != Field::other || line.starts_with(kKept))) plain += kKept;
      plain += line;
    });
    plain += text.substr(header);
    if (quoted > 0) plain = change_quotes<true>(plain);
    if (quoted == 2) plain += '\n';
    Bytes message = to_bytes(plain);
    if (quoted > 0) {
      const std::string_view end = header_line_end(text.substr(0, header), line_end);
      message = with_fields(message, as_bytes(fmt::format("X-Kin-Quoted: {}{}", quoted, end)));
    }
    message = with_marks(message, marks, line_end);
    if (equal(content_of(message), content) && marks_of(message) == marks) return message;
  }
  return std::nullopt;
}

}  // namespace kin::sync::mbox
