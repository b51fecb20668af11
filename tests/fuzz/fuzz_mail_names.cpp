// What a mail store says besides its mail, from anywhere: names of message files, the files of keywords, the
// MH profile, and the copy that a cut change of an mbox leaves. The first byte says which of these the rest
// is.
#include "lib/base/check.h"
#include "lib/base/file.h"
#include "lib/sync/item.h"
#include "lib/sync/maildir_name.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_lock.h"
#include "lib/sync/mh_profile.h"
#include "tests/support/temp_dir.h"

#include <algorithm>
#include <cstdint>
#include <fcntl.h>

namespace {

using namespace kin;
using namespace kin::sync;

int directory() {
  static const testing::TempDir dir;
  static const int fd = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  KIN_CHECK(fd >= 0);
  return fd;
}

void put(const char* name, ByteView bytes) {
  const Fd fd(::openat(directory(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  KIN_CHECK(fd && write_all(fd.get(), bytes, name).has_value());
}

// Flags that are set are there, and what a name says else stays.
void read_name(ByteView input) {
  const std::string_view name = as_text(input);
  const maildir::NameView view = maildir::parse_name(name);
  const std::uint8_t flags = maildir::flags_in(view.letters);
  const std::uint32_t keywords = maildir::keywords_in(view.letters);
  static_cast<void>(maildir::without_uid(view.unique));
  static_cast<void>(maildir::unique_made_at(view.unique));
  if (!maildir::is_good_unique(view.unique)) return;
  const std::uint8_t other = flags ^ kSeen;
  const std::string made = maildir::make_name(view.unique, view, other, keywords);
  const maildir::NameView again = maildir::parse_name(made);
  if (again.unique != view.unique) {
    KIN_CHECK(!maildir::unique_made_at(view.unique) || maildir::unique_made_at(again.unique) != 0);
    return;
  }
  KIN_CHECK(made.size() <= 255);
  KIN_CHECK(maildir::flags_in(again.letters) == other && maildir::keywords_in(again.letters) == keywords);
  KIN_CHECK(again.extra == view.extra);
}

// What has no letter yet gets one that nobody uses; the others keep theirs.
void read_keywords(ByteView input) {
  put(maildir::kKeywordsFile, input);
  auto keywords = maildir::Keywords::load(directory(), "keywords");
  if (!keywords) return;
  const std::uint32_t named = keywords->named();
  const std::vector<std::string> words = keywords->words_for(maildir::kAllKeywords);
  const auto letters = keywords->letters_for(words);
  KIN_CHECK(letters && keywords->words_for(*letters) == words);
  const auto given = keywords->assign_letters({"a-new-word"}, 0x3, directory(), "keywords");
  KIN_CHECK(given.has_value() && (keywords->named() & named) == named);
  const auto read = maildir::Keywords::load(directory(), "keywords");
  KIN_CHECK(read && read->words_for(maildir::kAllKeywords) == keywords->words_for(maildir::kAllKeywords));
}

void read_profile(ByteView input) {
  const MhProfile profile = MhProfile::parse(as_text(input));
  KIN_CHECK(!profile.unseen.empty() && profile.unseen.size() <= 16);
}

// The first two bytes are the length of the copy's content, the next one how it is cut; behind the content is
// what the file has.
void finish_change(ByteView input) {
  if (input.size() < 3) return;
  const std::size_t content_size = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 3);
  const std::uint8_t how = input[2];
  const Bytes content(input.begin() + 3, input.begin() + 3 + static_cast<std::ptrdiff_t>(content_size));
  const ByteView old = input.subspan(3 + content_size);
  const mbox::Place place{directory(), "box", "box"};
  constexpr const char* kCopy = ".box.kin-new";
  ::unlinkat(directory(), kCopy, 0);
  put("box", old);
  std::vector<std::uint64_t> known;
  for (const mbox::Range& range : mbox::find_messages(old))
    known.push_back(mbox::message_hash(old.subspan(range.header, range.end - range.header)));
  MemorySource source(content);
  KIN_CHECK(mbox::write_copy(place, source, known).has_value());
  if (how % 4 != 0) {
    const Fd fd(::openat(directory(), kCopy, O_RDWR | O_CLOEXEC));
    const off_t whole = ::lseek(fd.get(), 0, SEEK_END);
    if (how % 4 == 1) KIN_CHECK(::ftruncate(fd.get(), whole * (how / 4) / 64) == 0);
    const std::uint8_t other = how;
    if (how % 4 == 2) KIN_CHECK(::pwrite(fd.get(), &other, 1, std::max<off_t>(whole - 1 - how / 4, 0)) == 1);
    if (how % 4 == 3) KIN_CHECK(::pwrite(fd.get(), old.data(), old.size(), 0) >= 0);
  }
  mbox::Options options;
  options.lock_wait = std::chrono::milliseconds(0);
  const auto box = mbox::LockedBox::open(place, options);
  KIN_CHECK(box.has_value() && !mbox::has_copy(place));
  const auto now = box->read_all();
  KIN_CHECK(now.has_value());
  // All of the one, or all of the other. What looks new in the midst of an old message is kept behind it, as
  // it may be: here no message came in between, but hostile mail can look so.
  KIN_CHECK(equal(*now, old) ||
            (now->size() >= content.size() && equal(ByteView(*now).first(content.size()), content)));
}

constexpr void (*kParts[])(ByteView) = {read_name, read_keywords, read_profile, finish_change};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) kParts[data[0] % std::size(kParts)]({data + 1, size - 1});
  return 0;
}
