#include "formats/idat_member.h"

#include "formats/fields.h"
#include "formats/zlib_header.h"
#include "lib/base/wire.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace kin::formats {
namespace {

constexpr std::size_t kChunkHeader = 8, kChunkSum = 4;
constexpr std::string_view kImageType = "IDAT";
constexpr std::uint32_t kMostChunkBytes = 0x7fffffff;
// Of one image. Their lengths may have to be remembered while it is rebuilt.
constexpr std::size_t kMostChunks = 1 << 20;
constexpr std::size_t kMostTrailer = 64;
constexpr std::size_t kRebuildStep = 64 << 10;

enum Item : std::uint8_t { chunk_length = 1, deflate_corrections = 2, end_of_stream = 3 };

void add_big_endian(Bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

Error damaged_idat() { return Error(ErrorCode::corrupt, "the corrections of a PNG image are damaged"); }

}  // namespace

// The bytes in consecutive IDAT chunks, whose sums are compared. Keeps what it has read of `in` until told
// not to.
class IdatMember::Chunks : public ByteSource {
 public:
  explicit Chunks(PeekSource& in) : in_(in) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      if (left_ == 0) {
        KIN_TRY_ASSIGN(const bool more, begin_chunk());
        if (!more) break;
        continue;
      }
      const std::span<std::uint8_t> piece =
          into.subspan(done, std::min<std::size_t>(into.size() - done, left_));
      KIN_TRY_ASSIGN(const std::size_t got, in_.read(piece));
      note(piece.first(got));
      if (got < piece.size()) return Error(ErrorCode::corrupt, "PNG: a chunk is cut off");
      sum_.add(piece);
      done += got;
      left_ -= static_cast<std::uint32_t>(got);
      if (left_ == 0) KIN_TRY(end_chunk());
    }
    return done;
  }

  void give_back() { in_.give_back(std::exchange(kept_, {})); }
  void keep_no_more() {
    keeping_ = false;
    kept_ = Bytes();
  }
  std::vector<std::uint32_t> take_lengths() { return std::exchange(lengths_, {}); }
  std::uint64_t encoded_bytes() const { return encoded_bytes_; }

 private:
  void note(ByteView bytes) {
    encoded_bytes_ += bytes.size();
    if (keeping_) append(kept_, bytes);
  }

  Result<bool> begin_chunk() {
    KIN_TRY_ASSIGN(const ByteView head, in_.peek(kChunkHeader));
    if (head.size() < kChunkHeader || as_text(head.subspan(4)) != kImageType) return false;
    const std::uint64_t length = big_endian(head.first(4));
    if (length > kMostChunkBytes) return Error(ErrorCode::corrupt, "PNG: a chunk is too long");
    if (++count_ > kMostChunks) return Error(ErrorCode::unsupported, "PNG: too many chunks");
    left_ = static_cast<std::uint32_t>(length);
    lengths_.push_back(left_);
    sum_ = Crc32();
    sum_.add(head.subspan(4));
    note(head);
    in_.skip(kChunkHeader);
    if (left_ == 0) KIN_TRY(end_chunk());
    return true;
  }

  Result<void> end_chunk() {
    KIN_TRY_ASSIGN(const ByteView sum, in_.peek(kChunkSum));
    if (sum.size() < kChunkSum || big_endian(sum) != sum_.value())
      return Error(ErrorCode::corrupt, "PNG: the sum of a chunk is wrong");
    note(sum);
    in_.skip(kChunkSum);
    return {};
  }

  PeekSource& in_;
  std::uint32_t left_ = 0;  // of this chunk
  Crc32 sum_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> lengths_;
  std::uint64_t encoded_bytes_ = 0;
  bool keeping_ = true;
  Bytes kept_;
};

IdatMember::IdatMember(PeekSource& in, const ContainerLimits& limits)
    : chunks_(std::make_unique<Chunks>(in)),
      stream_(*chunks_),
      deflate_(stream_, std::numeric_limits<std::uint64_t>::max(), limits) {}
IdatMember::~IdatMember() = default;

Result<bool> IdatMember::prepare() {
  auto opens = open_stream();
  if (!opens && opens.error().code() != ErrorCode::corrupt && opens.error().code() != ErrorCode::unsupported)
    return opens;
  if (!opens || !*opens) {
    chunks_->give_back();
    return false;
  }
  chunks_->keep_no_more();
  return true;
}

Result<bool> IdatMember::open_stream() {
  KIN_TRY_ASSIGN(const ByteView header, stream_.peek(kZlibHeaderBytes));
  if (!is_zlib_header(header)) return false;
  zlib_header_.assign(header.begin(), header.end());
  stream_.skip(kZlibHeaderBytes);
  return deflate_.prepare();
}

Result<std::size_t> IdatMember::read(std::span<std::uint8_t> into) {
  KIN_TRY_ASSIGN(const std::size_t got, deflate_.read(into));
  sum_.add(into.first(got));
  if (got < into.size() && trailer_.empty()) KIN_TRY(read_trailer());
  return got;
}

Result<void> IdatMember::read_trailer() {
  KIN_TRY_ASSIGN(const ByteView rest, stream_.peek(kMostTrailer + 1));
  if (rest.size() > kMostTrailer) return Error(ErrorCode::unsupported, "PNG: more than an image");
  const bool is_sum = rest.size() == 4 && big_endian(rest) == sum_.value();
  WireWriter out;
  out.u8(end_of_stream);
  out.varint(is_sum ? 0 : rest.size() + 1);
  if (!is_sum) out.raw(rest);
  trailer_ = out.take();
  return {};
}

Bytes IdatMember::take_corrections() {
  WireWriter out;
  out.raw(std::exchange(zlib_header_, {}));
  for (const std::uint32_t length : chunks_->take_lengths()) {
    out.u8(chunk_length);
    out.varint(length);
  }
  const Bytes of_stream = deflate_.take_corrections();
  if (!of_stream.empty()) {
    out.u8(deflate_corrections);
    out.blob(of_stream);
  }
  out.raw(trailer_);
  trailer_.clear();
  return out.take();
}

std::uint64_t IdatMember::encoded_bytes() const { return chunks_->encoded_bytes(); }

namespace {

// Takes the corrections apart. Read as a source, it gives those of the deflate stream; lengths of chunks that
// are met on the way are kept.
class IdatCorrections : public ByteSource {
 public:
  explicit IdatCorrections(std::unique_ptr<ByteSource> source) : source_(std::move(source)), in_(*source_) {}

  // And the lengths of all chunks that a byte of it may be in.
  Result<Bytes> zlib_header() {
    KIN_TRY_ASSIGN(const ByteView header, in_.peek(kZlibHeaderBytes));
    if (header.size() < kZlibHeaderBytes) return damaged_idat();
    Bytes out(header.begin(), header.end());
    in_.skip(kZlibHeaderBytes);
    while (!ended_ && left_ == 0) KIN_TRY(next_item());
    return out;
  }

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size() && !ended_) {
      if (left_ == 0) {
        KIN_TRY(next_item());
        continue;
      }
      const std::span<std::uint8_t> piece =
          into.subspan(done, static_cast<std::size_t>(std::min<std::uint64_t>(into.size() - done, left_)));
      KIN_TRY_ASSIGN(const std::size_t got, in_.read(piece));
      if (got < piece.size()) return damaged_idat();
      done += got;
      left_ -= got;
    }
    return done;
  }

  // What follows the deflate stream, after its end.
  Result<Bytes> trailer(const Adler32& sum) {
    while (!ended_ && left_ == 0) KIN_TRY(next_item());
    if (!ended_) return damaged_idat();
    if (trailer_) return *trailer_;
    Bytes out;
    add_big_endian(out, sum.value());
    return out;
  }

  std::deque<std::uint32_t>& lengths() { return lengths_; }

 private:
  Result<void> next_item() {
    KIN_TRY_ASSIGN(const ByteView head, in_.peek(1 + 10 + kMostTrailer));
    WireReader reader(head);
    switch (reader.u8()) {
      case chunk_length:
        lengths_.push_back(static_cast<std::uint32_t>(reader.varint_up_to(kMostChunkBytes)));
        if (lengths_.size() > kMostChunks) return damaged_idat();
        break;
      case deflate_corrections:
        left_ = reader.varint();
        break;
      case end_of_stream:
        if (const std::uint64_t size = reader.varint_up_to(kMostTrailer + 1); size > 0) {
          const ByteView bytes = reader.raw(static_cast<std::size_t>(size - 1));
          trailer_ = Bytes(bytes.begin(), bytes.end());
        }
        ended_ = true;
        break;
      default:
        return damaged_idat();
    }
    if (reader.failed()) return damaged_idat();
    in_.skip(reader.position());
    return {};
  }

  const std::unique_ptr<ByteSource> source_;
  PeekSource in_;
  std::uint64_t left_ = 0;  // of these corrections of the deflate stream
  std::deque<std::uint32_t> lengths_;
  std::optional<Bytes> trailer_;  // none: the sum
  bool ended_ = false;
};

class SummedSource : public ByteSource {
 public:
  SummedSource(std::unique_ptr<ByteSource> source, Adler32& sum) : source_(std::move(source)), sum_(sum) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    KIN_TRY_ASSIGN(const std::size_t got, source_->read(into));
    sum_.add(into.first(got));
    return got;
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  Adler32& sum_;
};

// The corrections, borrowed.
class BorrowedSource : public ByteSource {
 public:
  explicit BorrowedSource(ByteSource& source) : source_(source) {}
  Result<std::size_t> read(std::span<std::uint8_t> into) override { return source_.read(into); }

 private:
  ByteSource& source_;
};

class IdatRebuilding : public ByteSource {
 public:
  IdatRebuilding(std::unique_ptr<ByteSource> plain, std::unique_ptr<ByteSource> corrections,
                 SearchBudget* search)
      : corrections_(std::move(corrections)),
        deflate_(rebuild_deflate(std::make_unique<SummedSource>(std::move(plain), sum_),
                                 std::make_unique<BorrowedSource>(corrections_), search)) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      if (frame_at_ < frame_.size()) {
        done += move(frame_, frame_at_, into.subspan(done));
        continue;
      }
      if (in_chunk_ && left_ == 0) {
        end_chunk();
        continue;
      }
      if (stream_at_ == stream_.size() && next_ != Next::nothing) {
        KIN_TRY(read_stream());
        continue;
      }
      const bool any = stream_at_ < stream_.size();
      if (in_chunk_) {
        if (!any) return damaged_idat();
        const std::size_t before = stream_at_;
        done +=
            move(stream_, stream_at_, into.subspan(done, std::min<std::size_t>(into.size() - done, left_)));
        chunk_sum_.add(ByteView(stream_).subspan(before, stream_at_ - before));
        left_ -= static_cast<std::uint32_t>(stream_at_ - before);
        continue;
      }
      if (corrections_.lengths().empty()) {
        if (any) return damaged_idat();
        break;
      }
      begin_chunk();
    }
    return done;
  }

 private:
  enum class Next { header, deflate, trailer, nothing };

  // As much as fits; gives how much.
  static std::size_t move(const Bytes& from, std::size_t& at, std::span<std::uint8_t> to) {
    const std::size_t size = std::min(from.size() - at, to.size());
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), size, to.begin());
    at += size;
    return size;
  }

  void begin_chunk() {
    left_ = corrections_.lengths().front();
    corrections_.lengths().pop_front();
    in_chunk_ = true;
    frame_.clear();
    frame_at_ = 0;
    add_big_endian(frame_, left_);
    append(frame_, as_bytes(kImageType));
    chunk_sum_ = Crc32();
    chunk_sum_.add(as_bytes(kImageType));
  }

  void end_chunk() {
    in_chunk_ = false;
    frame_.clear();
    frame_at_ = 0;
    add_big_endian(frame_, chunk_sum_.value());
  }

  // The next bytes of the zlib stream; there may be none of a kind.
  Result<void> read_stream() {
    stream_at_ = 0;
    if (next_ == Next::header) {
      KIN_TRY_ASSIGN(stream_, corrections_.zlib_header());
      next_ = Next::deflate;
    } else if (next_ == Next::deflate) {
      stream_.resize(kRebuildStep);
      const auto got = deflate_->read(stream_);
      stream_.resize(got ? *got : 0);
      if (!got) return got.error();
      if (*got < kRebuildStep) next_ = Next::trailer;
    } else {
      KIN_TRY_ASSIGN(stream_, corrections_.trailer(sum_));
      next_ = Next::nothing;
    }
    return {};
  }

  IdatCorrections corrections_;
  Adler32 sum_;  // of the plain bytes
  const std::unique_ptr<ByteSource> deflate_;
  Next next_ = Next::header;
  Bytes stream_;
  std::size_t stream_at_ = 0;
  bool in_chunk_ = false;
  std::uint32_t left_ = 0;  // of this chunk
  Crc32 chunk_sum_;
  Bytes frame_;  // what stands between the bytes of chunks, and comes next
  std::size_t frame_at_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> rebuild_idat(std::unique_ptr<ByteSource> plain,
                                         std::unique_ptr<ByteSource> corrections, SearchBudget* search) {
  return std::make_unique<IdatRebuilding>(std::move(plain), std::move(corrections), search);
}

}  // namespace kin::formats
