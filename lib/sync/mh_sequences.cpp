#include "lib/sync/mh_sequences.h"

#include "lib/base/pause.h"
#include "lib/base/random.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {
namespace mh {
namespace {

constexpr char kTemporaryPrefix[] = ",kin-";
constexpr std::int64_t kStaleSeconds = 36 * 3600;
constexpr std::size_t kMostSequenceNameBytes = 64;

struct FlagSequence {
  std::string_view name;
  std::uint8_t flag;
};
constexpr std::string_view kUnseen = "unseen", kCurrent = "cur";
constexpr FlagSequence kFlagSequences[] = {
    {"draft", kDraft},     {"flagged", kFlagged}, {"forwarded", kPassed},
    {"replied", kReplied}, {"trashed", kTrashed},
};

// nmh has these for messages, and refuses sequences of these names.
constexpr std::string_view kReserved[] = {"all", "first", "last", "new", "next", "prev"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::uint8_t flag_of(std::string_view name) {
  for (const FlagSequence& sequence : kFlagSequences)
    if (sequence.name == name) return sequence.flag;
  return 0;
}

// As in mh-sequence(5), and neither a flag nor one that is each replica's own. That one that is named
// "unseen" where the profile has others is of no use elsewhere.
bool is_word(std::string_view name) {
  return !name.empty() && name.size() <= kMostSequenceNameBytes && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); }) &&
         std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved) &&
         name != kUnseen && name != kCurrent && flag_of(name) == 0;
}

// Of a line in the file: more than we would make, for a message that is gone has to leave every sequence.
bool is_line_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostSequenceNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// Too large a number is one more than the largest; no number at all is none.
std::optional<std::uint32_t> read_number(std::string_view digits) {
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? std::min(number, kMostMhNumber + 1) : kMostMhNumber + 1;
}

bool is_named(int folder, const struct stat& opened) {
  struct stat named {};
  return ::fstatat(folder, kMhSequencesName, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

Result<std::string> read_text(int fd, const std::string& path) {
  std::string text;
  for (std::size_t step = 16 << 10;; step *= 2) {
    const std::size_t had = text.size();
    text.resize(had + step);
    const std::span<std::uint8_t> into(reinterpret_cast<std::uint8_t*>(text.data()) + had, step);
    KIN_TRY_ASSIGN(const std::size_t n, read_up_to(fd, into, path));
    text.resize(had + n);
    if (text.size() > kMostMhSequencesBytes)
      return Error(ErrorCode::unsupported, fmt::format("{} is too large", printable(path)));
    if (n < step) return text;
  }
}

}  // namespace
}  // namespace mh

std::uint32_t mh_number(std::string_view name) {
  if (name.empty() || name[0] == '0' || name.size() > 10) return 0;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_good = error == std::errc() && end == name.data() + name.size() && number <= kMostMhNumber;
  return is_good ? number : 0;
}

bool can_be_unseen(std::string_view name) { return name == mh::kUnseen || mh::is_word(name); }

MhSequences MhSequences::parse(std::string_view text, std::vector<std::string> unseen) {
  MhSequences out(std::move(unseen));
  std::size_t start = 0;
  while (start < text.size()) {
    // A line goes on where the next one begins with white space.
    std::size_t end = text.find('\n', start);
    while (end != std::string_view::npos && end + 1 < text.size() &&
           (text[end + 1] == ' ' || text[end + 1] == '\t'))
      end = text.find('\n', end + 1);
    end = std::min(end, text.size());
    // nmh refuses a file that has empty lines.
    if (end > start) out.add_line(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

bool MhSequences::is_unseen(std::string_view name) const {
  return std::find(unseen_.begin(), unseen_.end(), name) != unseen_.end();
}

bool MhSequences::wants(const MhMarks& marks, std::string_view name) const {
  if (is_unseen(name)) return (marks.flags & kSeen) == 0;
  if (const std::uint8_t flag = mh::flag_of(name)) return (marks.flags & flag) != 0;
  return std::binary_search(marks.words.begin(), marks.words.end(), name);
}

void MhSequences::add_line(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  while (!name.empty() && mh::is_space(name.back())) name.remove_suffix(1);
  if (colon == std::string_view::npos || !mh::is_line_name(name)) {
    lines_.push_back({"", std::string(text), {}});
    return;
  }
  Ranges ranges = parse_ranges(text.substr(colon + 1));
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    Line& line = lines_[known->second];
    line.ranges.insert(line.ranges.end(), ranges.begin(), ranges.end());
    line.ranges = joined(std::move(line.ranges));
    line.text = line_text(line.name, line.ranges);
    return;
  }
  if (by_name_.size() == kMostMhSequences) {
    lines_.push_back({"", std::string(text), {}});
    return;
  }
  by_name_.emplace(name, lines_.size());
  lines_.push_back({std::string(name), std::string(text), std::move(ranges)});
}

MhSequences::Ranges MhSequences::parse_ranges(std::string_view text) {
  Ranges out;
  for (std::size_t at = 0; at < text.size();) {
    if (mh::is_space(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !mh::is_space(text[end])) ++end;
    const std::string_view token = text.substr(at, end - at);
    at = end;
    const std::size_t dash = token.find('-');
    const auto first = mh::read_number(token.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : mh::read_number(token.substr(dash + 1));
    if (first && last && *first <= *last && *last > 0 && *first <= kMostMhNumber)
      out.push_back({std::max(*first, 1U), std::min(*last, kMostMhNumber)});
  }
  return joined(std::move(out));
}

MhSequences::Ranges MhSequences::joined(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Ranges out;
  for (const Range& range : ranges) {
    if (!out.empty() && range.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, range.last);
    else
      out.push_back(range);
  }
  return out;
}

// One pass over both, for there may be many of either.
MhSequences::Ranges MhSequences::edited(const Ranges& ranges, const std::map<std::uint32_t, bool>& members) {
  Ranges out;
  const auto put = [&](std::uint32_t first, std::uint32_t last) {
    if (!out.empty() && first == out.back().last + 1)
      out.back().last = last;
    else
      out.push_back({first, last});
  };
  auto member = members.begin();
  const auto put_member = [&] {
    if (member->second) put(member->first, member->first);
    ++member;
  };
  for (const Range& range : ranges) {
    while (member != members.end() && member->first < range.first) put_member();
    std::uint32_t next = range.first;
    while (member != members.end() && member->first <= range.last) {
      if (next < member->first) put(next, member->first - 1);
      next = member->first + 1;
      put_member();
    }
    if (next <= range.last) put(next, range.last);
  }
  while (member != members.end()) put_member();
  return out;
}

bool MhSequences::contains(const Ranges& ranges, std::uint32_t number) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), number,
                       [](std::uint32_t wanted, const Range& range) { return wanted < range.first; });
  return after != ranges.begin() && number <= std::prev(after)->last;
}

std::string MhSequences::line_text(const std::string& name, const Ranges& ranges) {
  std::string out = name + ":";
  for (const Range& range : ranges) {
    out += ' ' + std::to_string(range.first);
    if (range.last > range.first) out += '-' + std::to_string(range.last);
  }
  return out;
}

std::string MhSequences::text() const {
  std::string out;
  for (const Line& line : lines_)
    if (!line.text.empty()) out.append(line.text) += '\n';
  return out;
}

MhMarks MhSequences::marks_of(std::uint32_t number) const {
  MhMarks marks;
  for (const auto& [name, index] : by_name_) {
    if (!contains(lines_[index].ranges, number)) continue;
    if (is_unseen(name))
      marks.flags &= static_cast<std::uint8_t>(~kSeen);
    else if (const std::uint8_t flag = mh::flag_of(name))
      marks.flags |= flag;
    else if (mh::is_word(name))
      marks.words.push_back(name);
  }
  return marks;
}

void MhSequences::change(const Changes& changes) {
  const auto have = [&](std::string_view name) {
    if (by_name_.contains(name) || by_name_.size() == kMostMhSequences) return;
    by_name_.emplace(name, lines_.size());
    lines_.push_back({std::string(name), "", {}});
  };
  for (const auto& [number, marks] : changes) {
    if (!marks) continue;
    for (const std::string& unseen : unseen_)
      if (wants(*marks, unseen)) have(unseen);
    for (const mh::FlagSequence& sequence : mh::kFlagSequences)
      if (wants(*marks, sequence.name)) have(sequence.name);
    for (const std::string& word : marks->words)
      if (mh::is_word(word) && !is_unseen(word)) have(word);
  }
  for (const auto& [name, index] : by_name_) {
    const bool is_ours = is_unseen(name) || mh::flag_of(name) != 0 || mh::is_word(name);
    std::map<std::uint32_t, bool> members;
    for (const auto& [number, marks] : changes)
      if (!marks || is_ours) members.emplace(number, marks && wants(*marks, name));
    Line& line = lines_[index];
    Ranges ranges = edited(line.ranges, members);
    if (ranges == line.ranges) continue;
    line.ranges = std::move(ranges);
    line.text = line.ranges.empty() ? "" : line_text(name, line.ranges);
  }
}

Result<MhSequenceFile> MhSequenceFile::open(int folder, const std::string& folder_path, Use use,
                                            Clock::time_point deadline, const MhProfile& profile) {
  constexpr auto kBetweenTries = std::chrono::milliseconds(10);
  const bool is_read = use == Use::read;
  const int flags = (is_read ? O_RDONLY : O_RDWR) | (use == Use::make_and_change ? O_CREAT : 0);
  MhSequenceFile file;
  file.path_ = folder_path + "/" + kMhSequencesName;
  file.sequences_ = MhSequences(profile.unseen);
  for (;;) {
    Fd fd(::openat(folder, kMhSequencesName, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!fd && errno == ENOENT && use != Use::make_and_change) return file;
    if (!fd) return errno_error("cannot open", file.path_);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error("cannot look at", file.path_);
    if (!S_ISREG(info.st_mode))
      return Error(ErrorCode::unsupported, fmt::format("{} is not a regular file", printable(file.path_)));
    KIN_TRY_ASSIGN(std::optional<MhLock> lock,
                   MhLock::try_take(profile.locking, folder, fd.get(), is_read, file.path_));
    // Whoever had it may have put another file in its place.
    if (lock && mh::is_named(folder, info)) {
      KIN_TRY_ASSIGN(file.text_, mh::read_text(fd.get(), file.path_));
      file.sequences_ = MhSequences::parse(file.text_, profile.unseen);
      file.mode_ = info.st_mode & 0777;
      file.fd_ = std::move(fd);
      file.lock_ = *std::move(lock);
      return file;
    }
    if (Clock::now() >= deadline)
      return Error(ErrorCode::busy, fmt::format("{} is locked by another program", printable(file.path_)));
    if (!lock) pause_for(kBetweenTries);
  }
}

Result<bool> MhSequenceFile::change(int folder, const MhSequences::Changes& changes) {
  MhSequences changed = sequences_;
  changed.change(changes);
  const std::string text = changed.text();
  if (text == text_) return false;
  if (text.size() > kMostMhSequencesBytes)
    return Error(ErrorCode::unsupported, fmt::format("{} would become too large", printable(path_)));
  KIN_TRY_ASSIGN(const MhTemporary temporary, make_mh_temporary(folder, path_));
  const auto write = [&]() -> Result<void> {
    KIN_TRY(write_all(temporary.fd.get(), as_bytes(text), path_));
    if (::fchmod(temporary.fd.get(), mode_) != 0 || ::fsync(temporary.fd.get()) != 0)
      return errno_error("cannot write", path_);
    if (::renameat(folder, temporary.name.c_str(), folder, kMhSequencesName) != 0)
      return errno_error("cannot replace", path_);
    return {};
  };
  if (auto written = write(); !written) {
    ::unlinkat(folder, temporary.name.c_str(), 0);
    return std::move(written).error();
  }
  sequences_ = std::move(changed);
  text_ = text;
  return true;
}

Result<MhTemporary> make_mh_temporary(int folder, const std::string& folder_path) {
  constexpr int kMostTries = 10;
  for (int tries = 0;; ++tries) {
    std::string name = fmt::format("{}{:x}-{:016x}", mh::kTemporaryPrefix, now().seconds, random_number());
    Fd fd(::openat(folder, name.c_str(), kMakeFile, 0600));
    if (fd) return MhTemporary{std::move(fd), std::move(name)};
    if (errno != EEXIST || tries == kMostTries) return errno_error("cannot make a file in", folder_path);
  }
}

bool is_stale_mh_temporary(std::string_view name, Timestamp now) {
  if (!name.starts_with(mh::kTemporaryPrefix)) return false;
  name.remove_prefix(std::size(mh::kTemporaryPrefix) - 1);
  std::int64_t made = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), made, 16);
  return error == std::errc() && made >= 0 && end != name.data() + name.size() && *end == '-' &&
         made < now.seconds - mh::kStaleSeconds;
}

}  // namespace kin::sync
