// Names of message files in a Maildir: UNIQUE:2,LETTERS[,EXTRA]. The unique part stays for the life of a
// message; the letters are its flags (DFPRST) and keywords (a to z), and programs put other things among and
// after them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kin::sync::maildir {

// What a name says. Its views are of the text that it was parsed from. Where a program that knows only the
// colon has put letters behind those that were there, as in "UNIQUE;2,S:2,F", the letters are all of them.
struct NameView {
  std::string_view unique;
  char delimiter = ':';  // of the letters: what lies where no name can have a colon has ';' or '!'
  std::string letters;
  std::string_view extra;  // from its comma on
};
NameView parse_name(std::string_view name);

std::uint8_t flags_in(std::string_view letters);      // bits as of Flag
std::uint32_t keywords_in(std::string_view letters);  // bit 0 is the letter a
inline constexpr std::uint32_t kAllKeywords = (1U << 26) - 1;

// With other flags and keywords; all else that `old` has is kept.
std::string make_name(std::string_view unique, const NameView& old, std::uint8_t flags,
                      std::uint32_t keywords);

// Without the fields ",U=..." and ",FMD5=...": a number in this very folder, and which one that is.
std::string without_uid(std::string_view unique);

// Whether a name that comes from elsewhere can be the unique part of a message here, whatever flags it will
// get.
bool is_good_unique(std::string_view unique);

// One that no other process on any host makes.
std::string make_unique();
// Whether it comes from make_unique(), and when it was made, in seconds since 1970. 0: it does not.
std::int64_t unique_made_at(std::string_view unique);

}  // namespace kin::sync::maildir
