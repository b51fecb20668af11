// The sequences of an MH folder: its file .mh_sequences says which messages are unseen, replied to, or in a
// set of the user's own. Here they are what every kind of store has: flags and words.
//
//   draft, flagged, forwarded, replied, trashed   a flag each
//   unseen, or those that the profile names       kSeen is the message that is in none of them
//   cur                                           where the reader of this replica is: no one else's business
//   all others                                    words, by their names
#pragma once

#include "lib/base/file.h"
#include "lib/sync/item.h"
#include "lib/sync/mh_lock.h"
#include "lib/sync/mh_profile.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kin::sync {

inline constexpr char kMhSequencesName[] = ".mh_sequences";
inline constexpr std::uint32_t kMostMhNumber = 2'147'483'647;  // nmh has them as int
inline constexpr std::size_t kMostMhSequences = 1000;          // more are left alone, and are no words
inline constexpr std::size_t kMostMhSequencesBytes = 16 << 20;

// The message that a file name stands for; 0: it stands for none.
std::uint32_t mh_number(std::string_view name);

// Whether a profile may name it as a sequence of messages that are not seen.
bool can_be_unseen(std::string_view name);

// What the sequences say of a message.
struct MhMarks {
  std::uint8_t flags = kSeen;
  std::vector<std::string> words;  // in order, none twice

  bool operator==(const MhMarks&) const = default;
};

// What a .mh_sequences file says. Ranges stay ranges: "1-2000000000" takes no more than "1".
class MhSequences {
 public:
  // `unseen`: the sequences of messages that are not seen.
  explicit MhSequences(std::vector<std::string> unseen = MhProfile().unseen) : unseen_(std::move(unseen)) {}
  // Every text is one: what makes no sense is kept as it is, and says nothing.
  static MhSequences parse(std::string_view text, std::vector<std::string> unseen = MhProfile().unseen);
  std::string text() const;

  MhMarks marks_of(std::uint32_t number) const;

  // Sets what is said of these messages; nothing: the message is gone. A word that cannot be the name of a
  // sequence is left out. What is said of others stays, and so does "cur" but for those gone.
  using Changes = std::map<std::uint32_t, std::optional<MhMarks>>;
  void change(const Changes& changes);

 private:
  struct Range {
    std::uint32_t first = 0, last = 0;
    bool operator==(const Range&) const = default;
  };
  using Ranges = std::vector<Range>;  // in order and apart
  struct Line {
    std::string name;  // empty: makes no sense
    std::string text;  // as it was read, until it is changed
    Ranges ranges;
  };

  static Ranges parse_ranges(std::string_view text);
  static Ranges joined(Ranges ranges);
  static Ranges edited(const Ranges& ranges, const std::map<std::uint32_t, bool>& members);
  static bool contains(const Ranges& ranges, std::uint32_t number);
  static std::string line_text(const std::string& name, const Ranges& ranges);
  void add_line(std::string_view text);
  bool is_unseen(std::string_view name) const;
  bool wants(const MhMarks& marks, std::string_view name) const;

  std::vector<std::string> unseen_;
  std::vector<Line> lines_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // of those in lines_ that have one
};

// The file .mh_sequences of a folder, locked as the profile has it for as long as this lives.
class MhSequenceFile {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Use {
    read,            // shared with other readers; no file is an empty one
    change,          // by us alone; no file is an empty one, and is not locked
    make_and_change  // by us alone; made, if there is none
  };

  // busy, if others do not let go of the lock until `deadline`. `folder` is an open directory, of that path.
  static Result<MhSequenceFile> open(int folder, const std::string& folder_path, Use use,
                                     Clock::time_point deadline, const MhProfile& profile);

  const MhSequences& sequences() const { return sequences_; }
  // Makes the changes in the file too, which is replaced as a whole; the folder is left for the caller to
  // fsync. False if there is nothing to write. On an error all is as before.
  Result<bool> change(int folder, const MhSequences::Changes& changes);

 private:
  Fd fd_;
  MhLock lock_;
  std::string path_;
  std::string text_;
  unsigned mode_ = 0600;
  MhSequences sequences_;
};

// A new file in a folder, of a name that no MH program takes for a message. The name has the time in it: the
// mtime becomes that of a message, and so does not tell if someone is still at work on it.
struct MhTemporary {
  Fd fd;
  std::string name;
};
Result<MhTemporary> make_mh_temporary(int folder, const std::string& folder_path);
// Made by a kin that did not live to remove it.
bool is_stale_mh_temporary(std::string_view name, Timestamp now);

}  // namespace kin::sync
