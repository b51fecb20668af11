#include "lib/sync/mbox_sender.h"

#include "lib/base/text.h"
#include "lib/sync/item.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::sync::mbox {
namespace {

constexpr std::size_t kMostSenderBytes = 200;
constexpr std::string_view kNobody = "MAILER-DAEMON";

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// Words with one space between them.
bool can_be_sender(std::string_view text) {
  return !text.empty() && text.size() <= kMostSenderBytes && text.front() != ' ' && text.back() != ' ' &&
         text.find("  ") == std::string_view::npos && std::none_of(text.begin(), text.end(), is_control);
}

// Of a field; empty if there is none that an envelope can have.
std::string_view address_in(std::string_view field) {
  const std::string_view value = value_of_field(field);
  const std::size_t begin = value.find('<');
  const std::string_view inside =
      begin == std::string_view::npos ? value : value.substr(begin + 1, value.find('>', begin) - begin - 1);
  const std::vector<std::string_view> words = split_words(inside, 2);
  return words.size() == 1 && can_be_sender(words[0]) ? words[0] : std::string_view();
}

}  // namespace

std::string guess_sender(ByteView content) {
  std::string_view return_path, from;
  for_each_field(as_text(content), [&](std::string_view name, std::string_view field) {
    if (return_path.empty() && name == "return-path") return_path = address_in(field);
    if (from.empty() && name == "from") from = address_in(field);
  });
  return std::string(!return_path.empty() ? return_path : !from.empty() ? from : kNobody);
}

std::string name_of_sender(std::string_view sender) {
  if (!can_be_sender(sender)) return "";
  std::string out;
  for (const char c : sender) {
    const bool is_plain = c != '/' && c != '%' && (c != '.' || !out.empty());
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned>(c));
  }
  return out.size() <= kMostNameBytes ? out : "";
}

std::string sender_of_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = name[i] == '%' ? from_hex(name.substr(i + 1, 2)) : std::nullopt;
    if (byte && byte->size() == 1) i += 2;
    out += byte && byte->size() == 1 ? static_cast<char>((*byte)[0]) : name[i];
  }
  return can_be_sender(out) ? out : "";
}

}  // namespace kin::sync::mbox
