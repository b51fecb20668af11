#include "formats/quoted_printable.h"

#include "formats/quoted_printable_rule.h"
#include "formats/read_pieces.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace kin::formats {
namespace quoted_printable {
namespace {

using Rule = QuotedPrintableRule;

constexpr std::size_t kPieceBytes = 16 << 10;
constexpr std::size_t kMostVarint = 10;
// What escapes and line breaks take must be this much of the text, or decoding it changes nothing; and more
// than twice the corrections.
constexpr std::size_t kTextPerGain = 64;

Error damaged() { return Error(ErrorCode::corrupt, "the corrections of quoted-printable text are damaged"); }

constexpr std::string_view kUpperDigits = "0123456789ABCDEF", kLowerDigits = "0123456789abcdef";

class Rebuilding : public ByteSource {
 public:
  Rebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections)
      : plain_source_(std::move(plain)),
        corrections_source_(std::move(corrections)),
        plain_(*plain_source_),
        corrections_(*corrections_source_) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    return read_pieces(
        into, ready_, at_, [&] { return ended_; }, [&] { return next_piece(); });
  }

 private:
  Result<void> start() {
    KIN_TRY_ASSIGN(const ByteView head, corrections_.peek(Rule::kMostBytes));
    WireReader in(head);
    rule_ = Rule::read(in);
    if (in.failed()) return damaged();
    corrections_.skip(in.position());
    started_ = true;
    return next_choice();
  }

  // Positions only grow, so forged corrections end with the plain bytes.
  Result<void> next_choice() {
    KIN_TRY_ASSIGN(const ByteView head, corrections_.peek(kMostVarint));
    has_choice_ = !head.empty();
    if (!has_choice_) return {};
    WireReader in(head);
    const std::uint64_t value = in.varint();
    choice_ = static_cast<std::uint8_t>(value & ((1u << Rule::kChoiceBits) - 1));
    distance_ = value >> Rule::kChoiceBits;
    if (in.failed() || choice_ == 0) return damaged();
    corrections_.skip(in.position());
    return {};
  }

  // What was not expected of the next byte.
  Result<std::uint8_t> take_choice() {
    if (!has_choice_) return std::uint8_t{0};
    if (distance_ > 0) {
      --distance_;
      return std::uint8_t{0};
    }
    const std::uint8_t choice = choice_;
    KIN_TRY(next_choice());
    return choice;
  }

  Result<void> next_piece() {
    if (!started_) KIN_TRY(start());
    ready_.clear();
    at_ = 0;
    KIN_TRY_ASSIGN(const ByteView plain, plain_.peek(kPieceBytes + Rule::kLookAhead));
    const std::size_t size = std::min(plain.size(), kPieceBytes);
    for (std::size_t i = 0; i < size; ++i) {
      KIN_TRY_ASSIGN(const std::uint8_t choice, take_choice());
      encode(plain.subspan(i), choice);
    }
    plain_.skip(size);
    if (size > 0) return {};
    // A soft break may be the last.
    ended_ = true;
    KIN_TRY_ASSIGN(const std::uint8_t choice, take_choice());
    if (has_choice_ || (choice & ~Rule::kOtherBreak) != 0) return damaged();
    if (choice != 0) append(ready_, as_bytes(rule_.soft_break()));
    return {};
  }

  void encode(ByteView rest, std::uint8_t choice) {
    if (rule_.breaks_before(rest, column_) != ((choice & Rule::kOtherBreak) != 0)) {
      append(ready_, as_bytes(rule_.soft_break()));
      column_ = 0;
    }
    const bool escaped = rule_.escapes(rest, column_) != ((choice & Rule::kOtherForm) != 0);
    column_ = column_behind(rest, column_, escaped);
    if (!escaped) return ready_.push_back(rest[0]);
    const bool lower = rule_.lower_case != ((choice & Rule::kOtherCase) != 0);
    const std::string_view digits = lower ? kLowerDigits : kUpperDigits;
    for (const char c : {'=', digits[rest[0] >> 4], digits[rest[0] & 15]})
      ready_.push_back(static_cast<std::uint8_t>(c));
  }

  const std::unique_ptr<ByteSource> plain_source_, corrections_source_;
  PeekSource plain_, corrections_;
  bool started_ = false, ended_ = false;
  Rule rule_;
  bool has_choice_ = false;
  std::uint8_t choice_ = 0;
  std::uint64_t distance_ = 0;  // to the byte that it is about
  std::uint64_t column_ = 0;
  Bytes ready_;
  std::size_t at_ = 0;
};

// The plain bytes of a text, and what its encoder did with each. Whatever is no escape and no soft break is a
// byte as it is: nothing is malformed.
class Reading {
 public:
  struct Done {
    bool escaped : 1 = false, lower_case : 1 = false, upper_case : 1 = false, soft_break : 1 = false;
  };

  explicit Reading(ByteView text) : text_(text) {
    count_breaks();
    for (std::size_t at = 0; at < text.size();) at += take(text.subspan(at));
    done_.push_back(next_);
    find_kinds();
  }

  const Bytes& plain() const { return plain_; }
  Bytes take_plain() { return std::move(plain_); }

  // With the rule that is shorter for it.
  Bytes corrections() {
    rule_.last_fits = false;
    Bytes strict = write();
    rule_.last_fits = true;
    Bytes loose = write();
    return loose.size() < strict.size() ? loose : strict;
  }

 private:
  void count_breaks() {
    std::size_t newlines = 0, returns = 0;
    const std::string_view text = as_text(text_);
    for (std::size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
      newlines += text.substr(at).starts_with("=\n");
      returns += text.substr(at).starts_with("=\r\n");
    }
    rule_.returns = returns > newlines;
  }

  static int digit(std::uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  // How much of the text it was.
  std::size_t take(ByteView rest) {
    const std::string_view soft_break = rule_.soft_break();
    // A second one in the same place would need a byte between them, so it is taken for a line.
    if (as_text(rest).starts_with(soft_break) && !next_.soft_break) {
      next_.soft_break = true;
      rule_.line_limit = std::max<std::uint64_t>(rule_.line_limit, line_size_ + 1);
      line_size_ = 0;
      return soft_break.size();
    }
    if (rest.size() >= 3 && rest[0] == '=' && digit(rest[1]) >= 0 && digit(rest[2]) >= 0) {
      next_.escaped = true;
      for (const std::uint8_t c : rest.subspan(1, 2)) {
        if (c >= 'a') next_.lower_case = true;
        if (c >= 'A' && c < 'a') next_.upper_case = true;
      }
      if (!next_.lower_case || !next_.upper_case) {
        lower_cases_ += next_.lower_case;
        upper_cases_ += next_.upper_case;
        line_size_ += 3;
        add(static_cast<std::uint8_t>(digit(rest[1]) << 4 | digit(rest[2])));
        return 3;
      }
      next_.escaped = next_.lower_case = next_.upper_case = false;
    }
    line_size_ = rest[0] == '\n' ? 0 : line_size_ + 1;
    add(rest[0]);
    return 1;
  }

  void add(std::uint8_t byte) {
    plain_.push_back(byte);
    done_.push_back(std::exchange(next_, {}));
  }

  // Bytes of a kind are treated as most of them are.
  void find_kinds() {
    rule_.lower_case = lower_cases_ > upper_cases_;
    std::vector<std::int64_t> balance(Rule::kKinds);
    std::uint64_t column = 0;
    for (std::size_t i = 0; i < plain_.size(); ++i) {
      const ByteView rest = ahead(i);
      if (done_[i].soft_break) column = 0;
      balance[Rule::kind_of(rest, column)] += done_[i].escaped ? 1 : -1;
      column = column_behind(rest, column, done_[i].escaped);
    }
    for (std::size_t kind = 0; kind < Rule::kKinds; ++kind)
      if (balance[kind] != 0) rule_.escaped[kind] = balance[kind] > 0;
  }

  ByteView ahead(std::size_t at) const {
    return ByteView(plain_).subspan(at, std::min(Rule::kLookAhead, plain_.size() - at));
  }

  Bytes write() const {
    WireWriter out;
    rule_.write(out);
    std::uint64_t column = 0, distance = 0;
    for (std::size_t i = 0; i < done_.size(); ++i) {
      const ByteView rest = ahead(i);
      const Done& done = done_[i];
      std::uint8_t choice = 0;
      if (rule_.breaks_before(rest, column) != done.soft_break) choice |= Rule::kOtherBreak;
      if (done.soft_break) column = 0;
      if (!rest.empty()) {
        if (rule_.escapes(rest, column) != done.escaped) choice |= Rule::kOtherForm;
        if (rule_.lower_case ? done.upper_case : done.lower_case) choice |= Rule::kOtherCase;
        column = column_behind(rest, column, done.escaped);
      }
      if (choice != 0) out.varint(distance << Rule::kChoiceBits | choice);
      distance = choice != 0 ? 0 : distance + 1;
    }
    return out.take();
  }

  const ByteView text_;
  Rule rule_;
  Bytes plain_;
  std::vector<Done> done_;  // one more than bytes: a soft break may be the last
  Done next_;
  std::uint64_t line_size_ = 0, lower_cases_ = 0, upper_cases_ = 0;
};

// Whether the two give back the text.
Result<bool> gives_back(const Bytes& plain, const Bytes& corrections, ByteView text) {
  Rebuilding again(std::make_unique<MemorySource>(plain), std::make_unique<MemorySource>(corrections));
  Bytes buffer(kPieceBytes);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t size, again.read(buffer));
    if (size > text.size() || !equal(ByteView(buffer).first(size), text.first(size))) return false;
    text = text.subspan(size);
    if (size < buffer.size()) return text.empty();
  }
}

}  // namespace
}  // namespace quoted_printable

Result<std::optional<QuotedPrintableMember>> QuotedPrintableMember::open(ByteView text) {
  quoted_printable::Reading reading(text);
  const std::size_t gain = text.size() - reading.plain().size();
  if (gain < text.size() / quoted_printable::kTextPerGain) return std::optional<QuotedPrintableMember>();
  Bytes corrections = reading.corrections();
  if (gain <= 2 * corrections.size()) return std::optional<QuotedPrintableMember>();
  Bytes plain = reading.take_plain();
  KIN_TRY_ASSIGN(const bool exact, quoted_printable::gives_back(plain, corrections, text));
  if (!exact) return std::optional<QuotedPrintableMember>();
  return std::optional(QuotedPrintableMember(std::move(plain), std::move(corrections), text.size()));
}

std::unique_ptr<ByteSource> rebuild_quoted_printable(std::unique_ptr<ByteSource> plain,
                                                     std::unique_ptr<ByteSource> corrections, SearchBudget*) {
  return std::make_unique<quoted_printable::Rebuilding>(std::move(plain), std::move(corrections));
}

}  // namespace kin::formats
