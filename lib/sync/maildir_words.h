// The files of words in a Maildir: dovecot-keywords, which says what the letters a to z mean in a folder, and
// subscriptions. Both are replaced under the lock that Dovecot takes: the next content, as NAME.lock beside
// the file.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kin::sync::maildir {

inline constexpr const char* kKeywordsFile = "dovecot-keywords";
inline constexpr const char* kSubscriptionsFile = "subscriptions";

// A regular file in a directory, whole; nothing if there is none. io, if it is something else or beyond what
// such a file can be: it is never taken for an empty one. `path` is of the directory, here and below.
Result<std::optional<Bytes>> read_words_file(int directory, const std::string& name, const std::string& path);

// Holds the lock of a file until it is replaced or this goes.
class WordsFileLock {
 public:
  // busy, if someone else has had it for too long.
  static Result<WordsFileLock> take(int directory, const std::string& name, const std::string& path);
  WordsFileLock(WordsFileLock&& other) noexcept;
  WordsFileLock& operator=(WordsFileLock&&) = delete;
  ~WordsFileLock();

  // On the disk when this returns.
  Result<void> replace(ByteView content);

 private:
  WordsFileLock(int directory, std::string name, std::string path, int file);

  int directory_;
  std::string name_, path_;
  int file_;  // -1: no longer ours
};

// The lines of a subscriptions file as words: in order, none twice. Nothing: more than an item can have.
std::optional<std::vector<std::string>> parse_subscriptions(ByteView content);
std::string format_subscriptions(const std::vector<std::string>& words);

// What the letters mean in one folder. A letter of which nobody said what it means is the word
// "maildir-letter-x".
class Keywords {
 public:
  static Result<Keywords> load(int folder, const std::string& path);

  std::uint32_t named() const;  // letters that have a name
  std::vector<std::string> words_for(std::uint32_t letters) const;
  // Nothing, if there is a word that has no letter yet.
  std::optional<std::uint32_t> letters_for(const std::vector<std::string>& words) const;
  // Gives letters to those that have none, as long as there are any beside those `in_use` by messages; then
  // says which letters the words have. Words for which there is none left are not in the answer.
  Result<std::uint32_t> assign_letters(const std::vector<std::string>& words, std::uint32_t in_use,
                                       int folder, const std::string& path);

 private:
  static Keywords parse(ByteView content);
  std::optional<int> letter_for(const std::string& word) const;

  std::array<std::string, 26> names_;
  std::uint32_t taken_ = 0;  // letters that have a line, even one that makes no sense
};

}  // namespace kin::sync::maildir
