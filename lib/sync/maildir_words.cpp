#include "lib/sync/maildir_words.h"

#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/base/text.h"
#include "lib/sync/item.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync::maildir {
namespace {

constexpr off_t kMostFileBytes = 16 << 20;
constexpr std::string_view kUnnamedLetter = "maildir-letter-";
// The first line of the newer form of a subscriptions file; an empty one follows it.
constexpr std::string_view kSubscriptionsVersion = "V\t2";

bool is_good_word(std::string_view word) {
  return !word.empty() && word.size() <= kMostWordBytes && word.find('\0') == word.npos;
}

template <class OnLine>
void each_line(ByteView content, const OnLine& on_line) {
  std::string_view left = as_text(content);
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    on_line(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
}

}  // namespace

Result<std::optional<Bytes>> read_words_file(int directory, const std::string& name,
                                             const std::string& path) {
  const std::string file_path = path + "/" + name;
  const Fd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<Bytes>();
  if (!file) return errno_error("cannot open", file_path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error("cannot look at", file_path);
  if (!S_ISREG(status.st_mode)) return Error(ErrorCode::io, printable(file_path) + " is not a regular file");
  if (status.st_size > kMostFileBytes) return Error(ErrorCode::io, printable(file_path) + " is too large");
  Bytes content(static_cast<std::size_t>(status.st_size));
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to(file.get(), content, file_path));
  content.resize(size);
  return std::optional<Bytes>(std::move(content));
}

WordsFileLock::WordsFileLock(int directory, std::string name, std::string path, int file)
    : directory_(directory), name_(std::move(name)), path_(std::move(path)), file_(file) {}

WordsFileLock::WordsFileLock(WordsFileLock&& other) noexcept
    : directory_(other.directory_),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)) {}

WordsFileLock::~WordsFileLock() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlinkat(directory_, (name_ + ".lock").c_str(), 0);
}

Result<WordsFileLock> WordsFileLock::take(int directory, const std::string& name, const std::string& path) {
  constexpr std::chrono::seconds kWait(2);
  constexpr std::int64_t kStaleSeconds = 60;
  const std::string lock = name + ".lock";
  const auto until = std::chrono::steady_clock::now() + kWait;
  for (;;) {
    const int file =
        ::openat(directory, lock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) return WordsFileLock(directory, name, path, file);
    if (errno != EEXIST) return errno_error("cannot make", path + "/" + lock);
    struct stat status {};
    if (::fstatat(directory, lock.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_mtim.tv_sec < now().seconds - kStaleSeconds && ::unlinkat(directory, lock.c_str(), 0) == 0)
      continue;
    if (std::chrono::steady_clock::now() > until)
      return Error(ErrorCode::busy, "another program has locked " + printable(path + "/" + name));
    pause_for(std::chrono::milliseconds(20));
  }
}

Result<void> WordsFileLock::replace(ByteView content) {
  const std::string lock = name_ + ".lock", lock_path = path_ + "/" + lock;
  struct stat old {};
  // Dovecot may run as another user of the same group.
  if (::fstatat(directory_, name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode) &&
      ::fchmod(file_, old.st_mode & 0777) != 0)
    return errno_error("cannot set the mode of", lock_path);
  KIN_TRY(write_all(file_, content, lock_path));
  if (::fsync(file_) != 0) return errno_error("cannot sync", lock_path);
  if (::renameat(directory_, lock.c_str(), directory_, name_.c_str()) != 0)
    return errno_error("cannot rename", lock_path);
  ::close(std::exchange(file_, -1));
  if (::fsync(directory_) != 0) return errno_error("cannot sync", path_);
  return {};
}

std::optional<std::vector<std::string>> parse_subscriptions(ByteView content) {
  std::vector<std::string> words;
  each_line(content, [&](std::string_view line) {
    if (is_good_word(line)) words.emplace_back(line);
  });
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  if (words.size() > kMostWords) return std::nullopt;
  return words;
}

std::string format_subscriptions(const std::vector<std::string>& words) {
  std::string text;
  if (std::find(words.begin(), words.end(), kSubscriptionsVersion) != words.end())
    text = std::string(kSubscriptionsVersion) + "\n\n";
  for (const std::string& word : words)
    if (word != kSubscriptionsVersion) text += word + "\n";
  return text;
}

Keywords Keywords::parse(ByteView content) {
  Keywords keywords;
  each_line(content, [&](std::string_view line) {
    unsigned letter = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), letter);
    if (error != std::errc() || letter >= keywords.names_.size()) return;
    keywords.taken_ |= 1U << letter;
    const std::string_view rest = line.substr(static_cast<std::size_t>(end - line.data()));
    if (rest.starts_with(' ') && is_good_word(rest.substr(1))) keywords.names_[letter] = rest.substr(1);
  });
  return keywords;
}

Result<Keywords> Keywords::load(int folder, const std::string& path) {
  KIN_TRY_ASSIGN(const std::optional<Bytes> content, read_words_file(folder, kKeywordsFile, path));
  return content ? parse(*content) : Keywords();
}

std::uint32_t Keywords::named() const {
  std::uint32_t letters = 0;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!names_[i].empty()) letters |= 1U << i;
  return letters;
}

std::vector<std::string> Keywords::words_for(std::uint32_t letters) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if ((letters >> i & 1) == 0) continue;
    words.push_back(names_[i].empty() ? std::string(kUnnamedLetter) + static_cast<char>('a' + i) : names_[i]);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::optional<int> Keywords::letter_for(const std::string& word) const {
  const auto named = std::find(names_.begin(), names_.end(), word);
  if (named != names_.end()) return static_cast<int>(named - names_.begin());
  if (word.size() != kUnnamedLetter.size() + 1 || !word.starts_with(kUnnamedLetter)) return std::nullopt;
  // Where the letter means something by now, the word is one like any other.
  const int letter = word.back() - 'a';
  if (letter < 0 || letter >= 26 || !names_[static_cast<std::size_t>(letter)].empty()) return std::nullopt;
  return letter;
}

std::optional<std::uint32_t> Keywords::letters_for(const std::vector<std::string>& words) const {
  std::uint32_t letters = 0;
  for (const std::string& word : words) {
    const std::optional<int> letter = letter_for(word);
    if (!letter) return std::nullopt;
    letters |= 1U << *letter;
  }
  return letters;
}

Result<std::uint32_t> Keywords::assign_letters(const std::vector<std::string>& words, std::uint32_t in_use,
                                               int folder, const std::string& path) {
  KIN_TRY_ASSIGN(WordsFileLock lock, WordsFileLock::take(folder, kKeywordsFile, path));
  KIN_TRY_ASSIGN(std::optional<Bytes> content, read_words_file(folder, kKeywordsFile, path));
  Bytes text = content ? *std::move(content) : Bytes();
  *this = parse(text);
  Keywords next = *this;
  std::uint32_t letters = 0;
  std::vector<std::string> missing;
  for (const std::string& word : words) {
    if (const std::optional<int> letter = letter_for(word))
      letters |= 1U << *letter;
    else if (is_good_word(word) && word.find('\n') == word.npos)
      missing.push_back(word);
  }
  for (std::size_t i = 0; i < names_.size() && !missing.empty(); ++i) {
    if (((in_use | letters | taken_) >> i & 1) != 0) continue;
    next.names_[i] = missing.front();
    missing.erase(missing.begin());
    next.taken_ |= 1U << i;
    letters |= 1U << i;
    if (!text.empty() && text.back() != '\n') text.push_back('\n');
    append(text, as_bytes(std::to_string(i) + " " + next.names_[i] + "\n"));
  }
  if (next.taken_ == taken_) return letters;
  KIN_TRY(lock.replace(text));
  *this = std::move(next);
  return letters;
}

}  // namespace kin::sync::maildir
