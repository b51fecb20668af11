#include "lib/sync/mh_profile.h"

#include "lib/base/file.h"
#include "lib/sync/mh_sequences.h"
#include "lib/sync/store_files.h"

#include <cstdlib>
#include <strings.h>

namespace kin::sync {
namespace {

constexpr std::size_t kMostProfileBytes = 1 << 20;
constexpr std::size_t kMostUnseen = 16;

bool is_component(std::string_view name, std::string_view wanted) {
  return name.size() == wanted.size() && ::strncasecmp(name.data(), wanted.data(), wanted.size()) == 0;
}

std::string profile_path() {
  const char* const named = std::getenv("MH");
  if (named != nullptr && *named != '\0') return named;
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.mh_profile";
}

}  // namespace

MhProfile MhProfile::parse(std::string_view text) {
  MhProfile profile;
  while (!text.empty()) {
    // A line that begins with white space belongs to the one before.
    std::size_t end = text.find('\n');
    while (end != std::string_view::npos && end + 1 < text.size() &&
           (text[end + 1] == ' ' || text[end + 1] == '\t'))
      end = text.find('\n', end + 1);
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    const std::vector<std::string_view> words = split_words(line.substr(colon + 1), kMostUnseen);
    if (is_component(name, "Unseen-Sequence")) {
      std::vector<std::string> unseen;
      for (const std::string_view word : words)
        if (can_be_unseen(word)) unseen.emplace_back(word);
      if (!unseen.empty()) profile.unseen = std::move(unseen);
    } else if (is_component(name, "datalocking") && words.size() == 1) {
      profile.locking = words[0] == "dot"     ? Locking::dot
                        : words[0] == "flock" ? Locking::flock
                                              : Locking::fcntl;  // which lockf is too
    }
  }
  return profile;
}

MhProfile MhProfile::load() {
  const auto text = read_file(profile_path(), kMostProfileBytes);
  return text ? parse(as_text(*text)) : MhProfile();
}

}  // namespace kin::sync
