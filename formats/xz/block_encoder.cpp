#include "formats/xz/block_encoder.h"

#include "formats/xz/chunk_header.h"
#include "formats/xz/fast_parser.h"
#include "formats/xz/limits.h"
#include "formats/xz/optimal_parser.h"
#include "lib/base/check.h"

#include <new>

namespace kin::formats::xz {
namespace {

// What a chooser of symbols may look at: a stretch, and a match behind it.
constexpr std::uint32_t kMostSymbolBytes = kMostStretch + 1;
constexpr std::uint32_t kLookAhead = kMostSymbolBytes + kLongestMatch;

void put_size(Bytes& out, std::size_t size) {
  out.push_back(static_cast<std::uint8_t>((size - 1) >> 8));
  out.push_back(static_cast<std::uint8_t>(size - 1));
}

// Plain chunks, as long as they can be: what multi-threaded xz makes of a block that does not compress.
class StoredEncoder : public BlockEncoder {
 public:
  void add(ByteView plain) override {
    while (!plain.empty()) {
      const std::size_t size = std::min(plain.size(), kMostChunkBytes - chunk_.size());
      append(chunk_, plain.first(size));
      plain = plain.subspan(size);
      if (chunk_.size() == kMostChunkBytes) end_chunk();
    }
  }
  void finish() override {
    if (!chunk_.empty()) end_chunk();
    chunks_.push_back(0);
  }

 private:
  void end_chunk() {
    chunks_.push_back(finished_plain_bytes_ == 0 ? 1 : 2);
    put_size(chunks_, chunk_.size());
    append(chunks_, chunk_);
    finished_plain_bytes_ += chunk_.size();
    chunk_.clear();
  }

  Bytes chunk_;
};

class LzmaEncoder : public BlockEncoder {
 public:
  LzmaEncoder(const Settings& settings, std::uint32_t first_position)
      : settings_(settings),
        window_(std::size_t{settings.dictionary_bytes} + kMostStretch + kMostChunkBytes),
        finder_(settings, window_, first_position),
        coder_(settings),
        fast_(finder_, coder_),
        optimal_(finder_, coder_) {}

  void add(ByteView plain) override {
    added_bytes_ += plain.size();
    KIN_CHECK(table_bytes(settings_, added_bytes_) <= kMostTableBytes);
    while (!plain.empty()) {
      plain = plain.subspan(window_.add(plain));
      encode(kLookAhead);
    }
  }
  void finish() override {
    encode(0);
    if (position() > finished_plain_bytes_) end_chunk();
    chunks_.push_back(0);
  }
  ByteView unfinished() const override { return coder_.range.bytes(); }
  std::uint64_t steps() const override { return finder_.steps(); }

 private:
  std::uint64_t position() const { return window_.position() - finder_.ahead(); }
  std::size_t chunk_plain_bytes() const {
    return static_cast<std::size_t>(position() - finished_plain_bytes_);
  }

  // The symbols of a stretch are handed out one by one; those that are chosen are encoded, whatever is left.
  void encode(std::uint32_t leave) {
    while (window_.ahead() > leave || (leave == 0 && finder_.ahead() > 0)) {
      if (window_.position() == 0) {
        encode_first();
        continue;
      }
      const auto place = static_cast<std::uint32_t>(position());
      const Symbol symbol = settings_.optimal ? optimal_.next(place) : fast_.next();
      coder_.encode(symbol, place, window_.data() - finder_.ahead());
      finder_.used(symbol.length);
      if (chunk_plain_bytes() + kLongestMatch >= kMostChunkPlainBytes ||
          coder_.range.size_if_finished() >= kMostChunkBytes - kMostSymbolBytes)
        end_chunk();
    }
  }

  void encode_first() {
    const std::uint8_t byte = *window_.data();
    finder_.skip(1);
    finder_.used(1);
    coder_.encode_first(byte);
  }

  // What did not get smaller is stored. Then everything is forgotten but the dictionary, and what was looked
  // at but not encoded is stored with it.
  void end_chunk() {
    coder_.range.finish();
    const ByteView bytes = coder_.range.bytes();
    if (bytes.size() >= chunk_plain_bytes()) {
      finder_.used(finder_.ahead());
      const std::size_t size = chunk_plain_bytes();
      chunks_.push_back(dictionary_reset_ ? 1 : 2);
      put_size(chunks_, size);
      append(chunks_, {window_.data() - size, size});
      optimal_.forget();
      coder_.reset();
      state_reset_ = true;
    } else {
      put_compressed_header(bytes.size());
      append(chunks_, bytes);
      coder_.range.restart();
      properties_ = state_reset_ = false;
    }
    dictionary_reset_ = false;
    finished_plain_bytes_ = position();
  }

  void put_compressed_header(std::size_t size) {
    const std::size_t plain = chunk_plain_bytes() - 1;
    const std::uint32_t reset = properties_ ? (dictionary_reset_ ? 3 : 2) : (state_reset_ ? 1 : 0);
    chunks_.push_back(static_cast<std::uint8_t>(0x80 | reset << 5 | plain >> 16));
    chunks_.push_back(static_cast<std::uint8_t>(plain >> 8));
    chunks_.push_back(static_cast<std::uint8_t>(plain));
    put_size(chunks_, size);
    if (properties_) chunks_.push_back(properties_byte(settings_));
  }

  const Settings settings_;
  Window window_;
  MatchFinder finder_;
  SymbolCoder coder_;
  FastParser fast_;
  OptimalParser optimal_;
  std::uint64_t added_bytes_ = 0;
  bool properties_ = true, dictionary_reset_ = true, state_reset_ = false;
};

}  // namespace

Result<std::unique_ptr<BlockEncoder>> make_block_encoder(const Settings& settings,
                                                         std::uint32_t first_position) {
  if (settings.stored) return std::unique_ptr<BlockEncoder>(std::make_unique<StoredEncoder>());
  try {
    return std::unique_ptr<BlockEncoder>(std::make_unique<LzmaEncoder>(settings, first_position));
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::unsupported, "xz: no memory for the tables of the encoder");
  }
}

}  // namespace kin::formats::xz
