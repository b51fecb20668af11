#include "formats/base64.h"

#include "formats/base64_text.h"
#include "formats/read_pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kin::formats {
namespace base64 {
namespace {

constexpr std::size_t kLookBytes = 64 << 10;
// Longer lines are taken in pieces, as lines without an end. Twice this is in one look.
constexpr std::size_t kLongLine = 32 << 10;
constexpr std::size_t kMostLineRest = 4;       // padding and a line end
constexpr std::size_t kPlainPiece = 48 << 10;  // whole threes
// Lines of ever other lengths end a member: corrections are read as a whole when it is rebuilt, and are to be
// short beside the text.
constexpr std::size_t kMostCorrections = 16 << 10;
constexpr std::uint64_t kFreeCorrections = 64;
constexpr std::uint64_t kCharactersPerCorrection = 8;
constexpr std::size_t kMostRunBytes = 20;

constexpr std::string_view kLineEnds[] = {"", "\n", "\r\n"};
constexpr std::uint8_t kNoLineEnd = 0;

// Nothing if there is none; a lone return is none.
std::uint8_t line_end_of(ByteView text) {
  if (as_text(text).starts_with("\n")) return 1;
  return as_text(text).starts_with("\r\n") ? 2 : kNoLineEnd;
}

Error damaged() { return Error(ErrorCode::corrupt, "the corrections of base64 text are damaged"); }

class Rebuilding : public ByteSource {
 public:
  Rebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections)
      : plain_(std::move(plain)), corrections_(std::move(corrections)) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    if (corrections_) KIN_TRY(read_corrections());
    std::size_t done = 0;
    while (done < into.size() && !runs_.empty()) {
      const std::string_view line_end = kLineEnds[runs_.back().line_end];
      if (left_in_line_ > 0) {
        if (at_ == characters_.size()) KIN_TRY(encode_more());
        const auto size = static_cast<std::size_t>(
            std::min<std::uint64_t>({into.size() - done, left_in_line_, characters_.size() - at_}));
        std::copy_n(characters_.begin() + static_cast<std::ptrdiff_t>(at_), size,
                    into.begin() + static_cast<std::ptrdiff_t>(done));
        at_ += size;
        done += size;
        left_in_line_ -= size;
      } else if (at_line_end_ < line_end.size()) {
        into[done++] = static_cast<std::uint8_t>(line_end[at_line_end_++]);
      } else {
        next_line();
      }
    }
    if (done < into.size()) KIN_TRY(expect_end());
    return done;
  }

 private:
  struct Run {
    std::uint64_t lines, size;
    std::uint8_t line_end;
  };

  Result<void> read_corrections() {
    Bytes bytes(kMostCorrections + 1);
    KIN_TRY_ASSIGN(const std::size_t size, corrections_->read(bytes));
    corrections_.reset();
    if (size > kMostCorrections) return damaged();
    WireReader in(ByteView(bytes).first(size));
    spare_bits_ = in.u8();
    while (!in.failed() && in.left() > 0) {
      const std::uint64_t head = in.varint();
      const Run run{head >> 2, in.varint(), static_cast<std::uint8_t>(head & 3)};
      // Each line takes room, or forged ones could go on for ever.
      if (run.lines == 0 || run.line_end >= std::size(kLineEnds) ||
          (run.size == 0 && run.line_end == kNoLineEnd))
        return damaged();
      runs_.push_back(run);
    }
    if (in.failed()) return damaged();
    std::reverse(runs_.begin(), runs_.end());
    if (!runs_.empty()) left_in_line_ = runs_.back().size;
    return {};
  }

  void next_line() {
    at_line_end_ = 0;
    if (--runs_.back().lines == 0) runs_.pop_back();
    if (!runs_.empty()) left_in_line_ = runs_.back().size;
  }

  Result<void> encode_more() {
    characters_.clear();
    at_ = 0;
    if (plain_ended_) {
      characters_.push_back('=');
      return {};
    }
    Bytes plain(kPlainPiece);
    KIN_TRY_ASSIGN(const std::size_t size, plain_->read(plain));
    plain.resize(size);
    encode(plain, characters_);
    if (size == kPlainPiece) return {};
    // The last bits that were there are of no whole byte. After whole threes there may have been six of them,
    // and if there were none, no line asks for that character.
    plain_ended_ = true;
    const ByteView rest = ByteView(plain).subspan(size - size % 3);
    if (spare_bits_ >= (rest.empty() ? 64u : rest.size() == 1 ? 16u : 4u)) return damaged();
    if (!rest.empty()) characters_.push_back(character(rest[0] >> 2u));
    if (rest.size() == 2) characters_.push_back(character(rest[0] << 4u | rest[1] >> 4u));
    characters_.push_back(character(
        rest.empty() ? spare_bits_ : unsigned{rest.back()} << (rest.size() == 1 ? 4u : 2u) | spare_bits_));
    return {};
  }

  Result<void> expect_end() {
    if (plain_ended_) return {};
    std::uint8_t more = 0;
    KIN_TRY_ASSIGN(const std::size_t size, plain_->read(std::span(&more, 1)));
    plain_ended_ = true;
    return size == 0 ? Result<void>() : damaged();
  }

  const std::unique_ptr<ByteSource> plain_;
  std::unique_ptr<ByteSource> corrections_;  // until they are read
  unsigned spare_bits_ = 0;
  std::vector<Run> runs_;  // the next one last
  std::uint64_t left_in_line_ = 0;
  std::size_t at_line_end_ = 0;
  Bytes characters_;
  std::size_t at_ = 0;  // in them
  bool plain_ended_ = false;
};

}  // namespace
}  // namespace base64

Result<bool> Base64Member::begins(PeekSource& in, std::size_t least) {
  // Room for short lines, and for the end of a long one.
  KIN_TRY_ASSIGN(ByteView text, in.peek(std::max(3 * least, std::size_t{4096})));
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t characters = base64::count_characters(text);
    text = text.subspan(characters);
    const std::uint8_t line_end = base64::line_end_of(text);
    if (characters == 0 || (!text.empty() && text[0] != '=' && line_end == base64::kNoLineEnd)) break;
    count += characters;
    if (count >= least) return true;
    text = text.subspan(base64::kLineEnds[line_end].size());
  }
  return false;
}

Result<void> Base64Member::next_piece() {
  KIN_TRY_ASSIGN(const ByteView text, in_.peek(base64::kLookBytes));
  const bool is_all = text.size() < base64::kLookBytes;
  std::size_t taken = 0;
  while (!ended_ && (is_all || text.size() - taken > base64::kLongLine + base64::kMostLineRest))
    taken += take_line(text.subspan(taken));
  encoded_bytes_ += taken;
  in_.skip(taken);
  ready_.clear();
  at_ = 0;
  KIN_TRY(decode());
  if (ended_) finish();
  return {};
}

// Its length, with its end. The member ends before a line that is none, and behind the last.
std::size_t Base64Member::take_line(ByteView text) {
  const ByteView line = text.first(std::min(text.size(), base64::kLongLine));
  const std::size_t characters = padding_ == 0 ? base64::count_characters(line) : 0;
  const bool is_piece = characters == base64::kLongLine;
  const std::size_t padding =
      is_piece ? 0 : count_padding(text.subspan(characters), characters_ + characters);
  const std::size_t size = characters + padding;
  const std::uint8_t line_end = is_piece ? base64::kNoLineEnd : base64::line_end_of(text.subspan(size));
  const bool is_ended = line_end != base64::kNoLineEnd;
  // A line of words begins like one of base64, so it counts only as a whole; of a long one, the front is
  // gone.
  const bool is_whole = is_piece || is_ended || size == text.size();
  if ((!in_long_line_ && (size == 0 || !is_whole)) || !add_line(size, line_end)) {
    ended_ = true;
    return 0;
  }
  append(undecoded_, text.first(characters));
  characters_ += characters;
  padding_ += padding;
  in_long_line_ = is_piece;
  ended_with_line_ = is_ended;
  const bool is_padded = padding_ > 0 && (characters_ + padding_) % 4 == 0;
  ended_ = is_padded || !(is_ended || is_piece);
  return size + base64::kLineEnds[line_end].size();
}

// No more than there may be behind so many characters.
std::size_t Base64Member::count_padding(ByteView text, std::uint64_t characters) const {
  const std::uint64_t most = characters % 4 >= 2 ? 4 - characters % 4 - padding_ : 0;
  std::size_t count = 0;
  while (count < most && count < text.size() && text[count] == '=') ++count;
  return count;
}

// False: it is nothing, or the corrections would be too long.
bool Base64Member::add_line(std::uint64_t size, std::uint8_t line_end) {
  if (size == 0 && line_end == base64::kNoLineEnd) return false;
  if (run_.lines > 0 && run_.size == size && run_.line_end == line_end) {
    ++run_.lines;
    return true;
  }
  const std::uint64_t most = std::min<std::uint64_t>(
      base64::kMostCorrections,
      base64::kFreeCorrections + (characters_ + size) / base64::kCharactersPerCorrection);
  if (runs_.size() + 2 * base64::kMostRunBytes > most) return false;
  write_run();
  run_ = {1, size, line_end};
  return true;
}

void Base64Member::write_run() {
  if (run_.lines == 0) return;
  runs_.varint(run_.lines << 2 | run_.line_end);
  runs_.varint(run_.size);
}

// Whole fours, which are encoded again and compared; the others wait for the rest.
Result<void> Base64Member::decode() {
  const std::size_t size = undecoded_.size() / 4 * 4;
  base64::decode(ByteView(undecoded_).first(size), ready_);
  Bytes again;
  base64::encode(ready_, again);
  if (!equal(again, ByteView(undecoded_).first(size)))
    return Error(ErrorCode::unsupported, "base64 text does not come back as it was");
  undecoded_.erase(undecoded_.begin(), undecoded_.begin() + static_cast<std::ptrdiff_t>(size));
  return {};
}

// What is left is less than a four: a byte or two, and bits that should be zero and need not be.
void Base64Member::finish() {
  unsigned bits = 0;
  for (const std::uint8_t character : undecoded_) bits = bits << 6 | base64::kValues[character];
  unsigned spare = static_cast<unsigned>(undecoded_.size() * 6 % 8);
  if (undecoded_.size() == 1) spare = 6;
  if (undecoded_.size() == 3) ready_.push_back(static_cast<std::uint8_t>(bits >> 10));
  if (undecoded_.size() >= 2) ready_.push_back(static_cast<std::uint8_t>(bits >> spare));
  corrections_.push_back(static_cast<std::uint8_t>(bits & ((1u << spare) - 1)));
  write_run();
  append(corrections_, runs_.bytes());
}

Result<std::size_t> Base64Member::read(std::span<std::uint8_t> into) {
  return read_pieces(
      into, ready_, at_, [&] { return ended_; }, [&] { return next_piece(); });
}

Bytes Base64Member::take_corrections() { return std::exchange(corrections_, {}); }

std::unique_ptr<ByteSource> rebuild_base64(std::unique_ptr<ByteSource> plain,
                                           std::unique_ptr<ByteSource> corrections, SearchBudget*) {
  return std::make_unique<base64::Rebuilding>(std::move(plain), std::move(corrections));
}

}  // namespace kin::formats
