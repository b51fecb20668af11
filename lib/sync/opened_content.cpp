#include "lib/sync/opened_content.h"

#include "lib/base/wire.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::size_t kMostContentBytes = 2 << 20;
constexpr std::size_t kMostRatio = 8;
constexpr int kMostDepth = 3;
enum PartKind : std::uint8_t { kLiteral = 0, kCoded = 1, kCodedAndOpened = 2 };

std::optional<Bytes> open_at(const Formats& formats, ByteView content, int depth, SearchBudget& budget);

class PartWriter : public PartSink {
 public:
  PartWriter(const Formats& formats, int depth, std::size_t limit_bytes, SearchBudget& budget)
      : formats_(formats), depth_(depth), limit_bytes_(limit_bytes), budget_(budget) {}

  Result<void> literal(ByteView bytes) override {
    append(literal_, bytes);
    return check(literal_.size());
  }
  Result<void> member(std::string_view, ByteSource& bytes) override {
    Bytes buffer(64 << 10);
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t got, bytes.read(buffer));
      KIN_TRY(literal(ByteView(buffer).first(got)));
      if (got < buffer.size()) return {};
    }
  }
  Result<void> coded_member(CodingId coding, std::string_view, MemberSource& plain) override {
    Bytes bytes, corrections, buffer(64 << 10);
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t got, plain.read(buffer));
      append(bytes, ByteView(buffer).first(got));
      append(corrections, plain.take_corrections());
      KIN_TRY(check(bytes.size() + corrections.size()));
      if (got < buffer.size()) break;
    }
    flush();
    const auto opened = open_at(formats_, bytes, depth_ + 1, budget_);
    out_.u8(opened ? kCodedAndOpened : kCoded);
    out_.u8(static_cast<std::uint8_t>(coding));
    out_.varint(bytes.size());
    out_.blob(opened ? *opened : bytes);
    out_.blob(corrections);
    has_coded_ = true;
    return check(0);
  }

  // Nothing, if no part was decoded.
  std::optional<Bytes> finish() {
    flush();
    return has_coded_ ? std::optional<Bytes>(out_.take()) : std::nullopt;
  }

 private:
  Result<void> check(std::size_t more) const {
    if (out_.size() + more <= limit_bytes_) return {};
    return Error(ErrorCode::unsupported, "it would be too large");
  }
  void flush() {
    if (literal_.empty()) return;
    out_.u8(kLiteral);
    out_.blob(literal_);
    literal_.clear();
  }

  const Formats& formats_;
  const int depth_;
  const std::size_t limit_bytes_;
  SearchBudget& budget_;
  WireWriter out_;
  Bytes literal_;
  bool has_coded_ = false;
};

std::optional<Bytes> open_at(const Formats& formats, ByteView content, int depth, SearchBudget& budget) {
  if (depth >= kMostDepth || content.empty() || content.size() > kMostContentBytes) return std::nullopt;
  const ContainerFormat* const format =
      find_format(formats, content.first(std::min(content.size(), kHeadBytes)));
  if (format == nullptr || format->is_costly) return std::nullopt;
  MemoryView view(content);
  PeekSource source(view);
  ContainerLimits limits;
  limits.search = &budget;
  PartWriter writer(formats, depth, kMostRatio * content.size() + (64 << 10), budget);
  if (!format->open(source, writer, limits)) return std::nullopt;
  return writer.finish();
}

Result<Bytes> close_at(const Formats& formats, ByteView opened, std::size_t size, int depth) {
  if (depth > kMostDepth) return Error(ErrorCode::corrupt, "an opened content that is too deep");
  WireReader in(opened);
  Bytes out;
  const auto add = [&](ByteView bytes) -> Result<void> {
    if (bytes.size() > size - out.size())
      return Error(ErrorCode::corrupt, "an opened content that is too long");
    append(out, bytes);
    return {};
  };
  while (in.left() > 0 && !in.failed()) {
    const std::uint8_t kind = in.u8();
    if (kind == kLiteral) {
      KIN_TRY(add(in.blob()));
      continue;
    }
    const Coding* const coding = find_coding(formats, static_cast<CodingId>(in.u8()));
    const std::size_t plain_bytes = in.varint_up_to(kMostRatio * kMostContentBytes + (64 << 10));
    const ByteView stored = in.blob(), corrections = in.blob();
    if (kind > kCodedAndOpened || in.failed()) break;
    if (coding == nullptr) return Error(ErrorCode::unsupported, "a coding that this kin does not know");
    Bytes plain(stored.begin(), stored.end());
    if (kind == kCodedAndOpened) {
      KIN_TRY_ASSIGN(plain, close_at(formats, stored, plain_bytes, depth + 1));
    }
    const auto source = coding->rebuild(
        std::make_unique<MemorySource>(std::move(plain)),
        std::make_unique<MemorySource>(Bytes(corrections.begin(), corrections.end())), nullptr);
    Bytes buffer(64 << 10);
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t got, source->read(buffer));
      KIN_TRY(add(ByteView(buffer).first(got)));
      if (got < buffer.size()) break;
    }
  }
  KIN_TRY(in.finish("an opened content"));
  if (out.size() != size) return Error(ErrorCode::corrupt, "an opened content of another length");
  return out;
}

}  // namespace

std::optional<Bytes> open_content(const Formats& formats, ByteView content) {
  SearchBudget budget;
  budget.add_bytes(content.size());
  auto opened = open_at(formats, content, 0, budget);
  if (!opened) return std::nullopt;
  const auto closed = close_at(formats, *opened, content.size(), 0);
  return closed && equal(*closed, content) ? std::move(opened) : std::nullopt;
}

Result<Bytes> close_content(const Formats& formats, ByteView opened, std::size_t size) {
  return close_at(formats, opened, size, 0);
}

}  // namespace kin::sync
