#include "lib/sync/maildir_name.h"

#include "lib/base/text.h"
#include "lib/sync/item.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <unistd.h>

namespace kin::sync::maildir {
namespace {

constexpr std::string_view kFlagLetters = "DFPRST";  // in the order of Flag's bits
constexpr std::size_t kMostNameBytesOnDisk = 255;
constexpr std::string_view kOurMark = "_kin";

bool is_keyword(char letter) { return letter >= 'a' && letter <= 'z'; }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  std::string host = std::string(name.data()).substr(0, 64);
  for (char& c : host) {
    const bool is_plain =
        is_keyword(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!is_plain) c = '_';
  }
  return host.empty() ? "localhost" : host;
}

void take_letters_before(NameView& name) {
  for (const std::string_view mark : {";2,", "!2,"}) {
    const std::size_t at = name.unique.rfind(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view letters = name.unique.substr(at + mark.size());
    const bool are_letters = std::all_of(letters.begin(), letters.end(),
                                         [](char c) { return is_keyword(c) || (c >= 'A' && c <= 'Z'); });
    if (!are_letters) continue;
    for (const char letter : letters)
      if (name.letters.find(letter) == std::string::npos) name.letters += letter;
    name.unique = name.unique.substr(0, at);
    return;
  }
}

}  // namespace

NameView parse_name(std::string_view name) {
  for (const char delimiter : {':', ';', '!'}) {
    const char mark[] = {delimiter, '2', ','};
    const std::size_t at = name.rfind(std::string_view(mark, sizeof mark));
    if (at == std::string_view::npos) continue;
    const std::string_view info = name.substr(at + sizeof mark);
    const std::size_t comma = std::min(info.find(','), info.size());
    NameView out{name.substr(0, at), delimiter, std::string(info.substr(0, comma)), info.substr(comma)};
    if (delimiter == ':') take_letters_before(out);
    return out;
  }
  // Such as ":1,", which never came to mean anything.
  return {name.substr(0, name.rfind(':')), ':', {}, {}};
}

std::uint8_t flags_in(std::string_view letters) {
  std::uint8_t flags = 0;
  for (std::size_t bit = 0; bit < kFlagLetters.size(); ++bit)
    if (letters.find(kFlagLetters[bit]) != std::string_view::npos)
      flags |= static_cast<std::uint8_t>(1U << bit);
  return flags;
}

std::uint32_t keywords_in(std::string_view letters) {
  std::uint32_t keywords = 0;
  for (const char letter : letters)
    if (is_keyword(letter)) keywords |= 1U << (letter - 'a');
  return keywords;
}

std::string make_name(std::string_view unique, const NameView& old, std::uint8_t flags,
                      std::uint32_t keywords) {
  std::string letters;
  for (const char letter : old.letters)
    if (!is_keyword(letter) && kFlagLetters.find(letter) == std::string_view::npos) letters += letter;
  for (std::size_t bit = 0; bit < kFlagLetters.size(); ++bit)
    if ((flags >> bit & 1) != 0) letters += kFlagLetters[bit];
  for (int bit = 0; bit < 26; ++bit)
    if ((keywords >> bit & 1) != 0) letters += static_cast<char>('a' + bit);
  std::sort(letters.begin(), letters.end());
  const auto name_of = [&](std::string_view some_unique) {
    return std::string(some_unique) + old.delimiter + "2," + letters + std::string(old.extra);
  };
  std::string name = name_of(unique);
  // A message whose name has no room for its flags gets another one.
  return name.size() <= kMostNameBytesOnDisk ? name : name_of(make_unique());
}

std::string without_uid(std::string_view unique) {
  std::string out(unique);
  for (const std::string_view field : {",U=", ",FMD5="})
    for (std::size_t at; (at = out.find(field)) != std::string::npos;)
      out.erase(at, std::min(out.find(',', at + 1), out.size()) - at);
  return out;
}

bool is_good_unique(std::string_view unique) {
  constexpr std::size_t kRoomForInfo = 3 + 6 + 26;
  if (unique.empty() || unique.front() == '.' || unique.size() > kMostNameBytesOnDisk - kRoomForInfo)
    return false;
  for (const char c : unique)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f || c == '/' || c == ':' || c == '\\') return false;
  return parse_name(unique).unique == unique && without_uid(unique) == unique;
}

std::string make_unique() {
  static const std::string host = host_name();
  std::random_device random;  // the system's: no two processes get the same
  const Timestamp time = now();
  const std::uint32_t parts[] = {random(), random(), random()};
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(parts), sizeof parts);
  return std::to_string(time.seconds) + ".M" + std::to_string(time.nanoseconds / 1000) + "P" +
         std::to_string(::getpid()) + std::string(kOurMark) + hex(bytes) + "." + host;
}

std::int64_t unique_made_at(std::string_view unique) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(unique.data(), unique.data() + unique.size(), seconds);
  const std::string_view rest = unique.substr(static_cast<std::size_t>(end - unique.data()));
  const bool is_ours = error == std::errc() && rest.starts_with(".M") && rest.find(kOurMark) != rest.npos;
  return is_ours ? seconds : 0;
}

}  // namespace kin::sync::maildir
