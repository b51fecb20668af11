// PDF: most of it is streams that zlib has compressed, between "stream" and "endstream". The file's own
// structure is not needed to find them: where the keyword is followed by a zlib header, a deflate stream is
// looked for, which ends where it ends, whatever its dictionary says. So indirect lengths, wrong ones and
// several filters do no harm. All else is handed out between them.
#include "formats/deflate_member.h"
#include "formats/formats.h"
#include "formats/parts.h"
#include "formats/zlib_header.h"

#include <limits>
#include <string_view>

namespace kin::formats {
namespace {

constexpr std::string_view kKeyword = "stream", kEndKeyword = "endstream";
// The longest that tells a stream: "endstream", the end of a line, and a zlib header.
constexpr std::size_t kMostMark = kEndKeyword.size() + 2 + kZlibHeaderBytes;
constexpr std::size_t kPdfWindow = 64 << 10;
// Shorter streams would take more room as objects than they take as they are.
constexpr std::size_t kLeastStream = 512;
constexpr std::size_t kMostShortGap = 4096;
// Streams that do not open take long to find that out. This and as much as was passed is the most.
constexpr std::uint64_t kMostTriedInPdf = 4 << 20;
constexpr std::size_t kNowhere = std::string_view::npos;

bool is_pdf(ByteView head) { return as_text(head).starts_with("%PDF-"); }

// Where the first deflate stream begins, behind its zlib header.
std::size_t find_deflate(ByteView window) {
  const std::string_view text = as_text(window);
  for (std::size_t at = text.find(kKeyword); at != kNowhere; at = text.find(kKeyword, at)) {
    const bool is_end = text.substr(0, at).ends_with("end");
    at += kKeyword.size();
    if (is_end) continue;
    std::size_t behind = at;
    if (text.substr(behind).starts_with('\r')) ++behind;
    if (text.substr(behind).starts_with('\n')) ++behind;
    if (behind > at && is_zlib_header(window.subspan(behind))) return behind + kZlibHeaderBytes;
  }
  return kNowhere;
}

// Everything up to the next deflate stream, or the end.
class PdfGap : public ByteSource {
 public:
  explicit PdfGap(PeekSource& in) : in_(in) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      if (known_ == 0) KIN_TRY(look());
      if (known_ == 0) break;
      const std::span<std::uint8_t> piece = into.subspan(done, std::min(into.size() - done, known_));
      KIN_TRY_ASSIGN(const std::size_t got, in_.read(piece));
      done += got;
      known_ -= got;
    }
    return done;
  }

  // Whether it is no longer than that.
  Result<bool> is_short(std::size_t limit) {
    KIN_TRY(look());
    return known_ <= limit && ended_;
  }

 private:
  Result<void> look() {
    if (ended_) return {};
    KIN_TRY_ASSIGN(const ByteView window, in_.peek(kPdfWindow));
    known_ = find_deflate(window);
    ended_ = known_ != kNowhere || window.size() < kPdfWindow;
    if (known_ == kNowhere) known_ = ended_ ? window.size() : window.size() - (kMostMark - 1);
    return {};
  }

  PeekSource& in_;
  std::size_t known_ = 0;  // bytes to come that belong to it
  bool ended_ = false;     // with them
};

class Pdf {
 public:
  Pdf(PeekSource& in, PartSink& out, const ContainerLimits& limits) : in_(in), out_(out), limits_(limits) {}

  Result<void> run() {
    for (;;) {
      KIN_TRY(gap());
      KIN_TRY_ASSIGN(const ByteView next, in_.peek(kLeastStream));
      if (next.empty()) break;
      // What was made to look like a thousand streams within one another.
      if (tried_bytes_ > kMostTriedInPdf + in_.position()) {
        KIN_TRY(take_rest(in_, out_));
        break;
      }
      if (as_text(next).find(kEndKeyword) == kNowhere) KIN_TRY(stream());
    }
    if (any_) return {};
    return refuse_if_small(in_, limits_,
                           too_long_ ? deflate::kTakesTooLong : "no stream in it can be opened");
  }

 private:
  Result<void> gap() {
    PdfGap bytes(in_);
    KIN_TRY_ASSIGN(const bool is_short, bytes.is_short(kMostShortGap));
    if (!is_short) return out_.member("", bytes);
    Bytes literal(kMostShortGap);
    KIN_TRY_ASSIGN(const std::size_t size, bytes.read(literal));
    return out_.literal(ByteView(literal).first(size));
  }

  // One that cannot be opened begins the next gap.
  Result<void> stream() {
    DeflateMember member(in_, std::numeric_limits<std::uint64_t>::max(), limits_, hint_);
    KIN_TRY_ASSIGN(const bool opens, member.prepare());
    tried_bytes_ += member.tried_bytes();
    if (!opens) too_long_ = too_long_ || member.takes_too_long();
    if (!opens) return {};
    KIN_TRY(out_.coded_member(CodingId::deflate, "", member));
    hint_ = member.hint();
    any_ = true;
    return {};
  }

  PeekSource& in_;
  PartSink& out_;
  const ContainerLimits& limits_;
  bool any_ = false, too_long_ = false;
  std::uint64_t tried_bytes_ = 0;  // for nothing
  std::shared_ptr<const deflate::Opener::Hint> hint_;
};

Result<void> open_pdf(PeekSource& in, PartSink& out, const ContainerLimits& limits) {
  return Pdf(in, out, limits).run();
}

}  // namespace

const ContainerFormat kPdf = {"pdf", is_pdf, open_pdf};

}  // namespace kin::formats
