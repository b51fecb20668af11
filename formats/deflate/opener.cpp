#include "formats/deflate/opener.h"

#include "formats/deflate/estimate.h"
#include "formats/deflate/inflate_tokens.h"
#include "formats/deflate/opener_hint.h"
#include "formats/deflate/piece_decoder.h"
#include "formats/deflate/piece_header.h"
#include "formats/deflate/stream_codec.h"

#include <algorithm>
#include <vector>

namespace kin::formats::deflate {
namespace {

// A piece whose reconstruction took a larger part than 1/200 makes us ask again what encoder this is.
constexpr std::size_t kDoubt = 200;
// But not of an unknown one all the time: to try them all takes as long as to open two MiB, and much longer
// where someone wants it to. So it is asked after this many bytes, and after twice as many each time.
constexpr std::uint64_t kEstimateBytes = 4 << 20;
constexpr std::uint64_t kPigzChunk = 131072;
constexpr std::uint32_t kMostPatience = 64;
constexpr std::uint64_t kMostUnproven = 4 << 20;  // plain bytes of a stream
constexpr std::uint64_t kStepsOfStream = 16384;   // to make and forget tables

std::size_t count_tokens(std::span<const Block> blocks) {
  std::size_t out = 0;
  for (const Block& block : blocks) out += block.tokens.size();
  return out;
}

}  // namespace

struct Opener::State {
  State(BitReader::Read read, const OpenLimits& limits_given)
      : bits(std::move(read)),
        limits(limits_given),
        codec(limits_given.proven_later ? StreamCodec(work, record, false) : StreamCodec(work)),
        decoder(limits_given.proven_later ? PieceDecoder(work, record) : PieceDecoder(work)) {
    work.steps = kStepsOfStream;
  }

  BitReader bits;
  OpenLimits limits;
  BlockReader reader{bits, limits.block_bytes};
  SearchWork work;
  PredictionRecord record;
  StreamCodec codec;
  PieceDecoder decoder;
  std::optional<Parameters> parameters;  // of the piece before, or a hint
  bool started = false;
  bool doubt = true;
  std::uint64_t ask_after = 0, next_wait = kEstimateBytes;  // bytes of plain
  bool in_hope = true;                                      // all pieces so far
  bool predictor_knows = true;                              // the codec's, all that is before the next piece
  bool asked_again = false;                                 // see take_piece
  std::uint32_t patience = 0, next_patience = 2;            // pieces until there is hope again

  Bytes plain;  // up to 32 KiB of the past, and then what no piece has taken yet
  std::size_t plain_taken = 0;
  std::vector<Block> blocks;       // that no piece has taken yet
  std::uint64_t plain_before = 0;  // of `plain`, in the stream

  bool ended = false;
  std::uint8_t end_padding = 0;
  std::uint32_t end_padding_bits = 0;
  std::uint64_t compressed_before = 0;  // bytes of the stream that were compared and forgotten
  std::uint64_t reconstruction_bytes = 0;

  std::uint64_t since_flush = 0, flush_gap = 0;
  std::uint64_t steps_told = 0;  // to the budget of the file

  void note_flush(Block& block, const Block& next);
  Result<void> read_blocks();
  Result<void> read_block();
  Result<Piece> take_piece();
  void allow_work();
  void tell_work();
  bool is_hopeful(const EstimateInput& input, const Estimate& estimated, bool asked);
  std::optional<std::size_t> encode_in_hope(Piece& piece, const PieceHeader& header,
                                            const EstimateInput& input);
  Result<void> encode(Piece& piece, const PieceHeader& header);
  std::optional<std::size_t> rebuilt_size(const Piece& piece);
  Result<void> account(const Piece& piece, std::size_t compressed);
};

Opener::Opener(BitReader::Read read, OpenLimits limits, std::shared_ptr<const Hint> hint)
    : state_(std::make_unique<State>(std::move(read), limits)) {
  if (hint != nullptr) state_->parameters = hint->parameters;
}
Opener::~Opener() = default;

std::shared_ptr<const Opener::Hint> Opener::hint_of_level(int level) {
  return std::make_shared<const Hint>(zlib_level(level));
}

std::uint64_t Opener::compressed_bytes() const { return state_->compressed_before; }
ByteView Opener::unread() const { return state_->bits.kept(); }
const SearchWork& Opener::work() const { return state_->work; }
std::shared_ptr<const Opener::Hint> Opener::hint() const {
  if (!state_->started) return nullptr;
  return std::make_shared<const Hint>(*state_->parameters);
}

Result<std::optional<Piece>> Opener::next() {
  if (state_->ended && state_->blocks.empty()) return std::optional<Piece>();
  auto read = state_->read_blocks();
  if (!read) state_->tell_work();  // to fail takes time too
  KIN_TRY(std::move(read));
  auto piece = state_->take_piece();
  state_->tell_work();
  if (state_->work.is_spent()) return takes_too_long();
  if (!piece) return std::move(piece).error();
  return std::optional<Piece>(*std::move(piece));
}

Result<void> Opener::State::read_block() {
  if (limits.search != nullptr && limits.search->left() == 0) {
    work.most = 0;
    return takes_too_long();
  }
  const std::uint64_t compressed = compressed_before + bits.position() / 8;
  const std::uint64_t most = std::min(limits.most_plain, (compressed + 65536) * limits.most_ratio);
  const std::uint64_t here = most - std::min(most, plain_before);
  auto block = reader.next(plain, static_cast<std::size_t>(std::min<std::uint64_t>(here, SIZE_MAX)));
  if (!bits.failure()) return bits.failure();  // not the stream's fault
  if (!block) {
    // All that was made of it for nothing: a block may be a thousand times as large as its bytes.
    work.steps += plain.size();
    return std::move(block).error();
  }
  ended = block->final;
  if (!blocks.empty()) note_flush(blocks.back(), *block);
  blocks.push_back(*std::move(block));
  if (!ended) return {};
  end_padding_bits = static_cast<std::uint32_t>((8 - bits.position() % 8) % 8);
  bits.refill();
  end_padding = static_cast<std::uint8_t>(bits.take(end_padding_bits));
  return {};
}

// A flush leaves an empty block behind. pigz leaves none if it is on a byte boundary already; but its flushes
// come at even distances.
void Opener::State::note_flush(Block& block, const Block& next) {
  since_flush += block.plain_size;
  if (block.tokens.empty()) return;
  const bool even = next.start_bit == 0 && (since_flush == flush_gap || since_flush == kPigzChunk);
  const bool empty = next.plain_size == 0 && next.type != BlockType::dynamic;
  if (!even && !empty) return;
  block.flushed = true;
  flush_gap = since_flush;
  since_flush = 0;
}

// So many that a piece can be made of them: whole blocks, and kLookAhead bytes of those after.
Result<void> Opener::State::read_blocks() {
  std::size_t size = 0;
  for (const Block& block : blocks) size += block.plain_size;
  while (!ended && size < limits.piece_bytes + kLookAhead && blocks.size() < kMostBlocks / 2) {
    KIN_TRY(read_block());
    size += blocks.back().plain_size;
  }
  return {};
}

Result<Piece> Opener::State::take_piece() {
  std::size_t count = blocks.size(), size = 0;
  for (const Block& block : blocks) size += block.plain_size;
  while (!ended) {
    // Blocks at the end stay for the next piece: one, to see how the one before it ended, and more until
    // there is enough to look ahead at.
    std::size_t kept = 0;
    count = blocks.size();
    while (count > 0 && (kept < kLookAhead || count == blocks.size())) kept += blocks[--count].plain_size;
    if (count > 0) break;
    KIN_TRY(read_block());
    size += blocks.back().plain_size;
    if (blocks.size() >= kMostBlocks) return Error(ErrorCode::unsupported, "deflate: too many small blocks");
  }
  if (ended) count = blocks.size();
  std::size_t covered = 0;
  for (std::size_t i = 0; i < count; ++i) covered += blocks[i].plain_size;
  const std::size_t new_overhang = std::min(size - covered, kLookAhead);

  Piece piece;
  const std::size_t plain_end = plain.size() - (size - covered) + new_overhang;
  piece.plain.assign(plain.begin() + static_cast<std::ptrdiff_t>(plain_taken),
                     plain.begin() + static_cast<std::ptrdiff_t>(plain_end));
  plain_taken = plain_end;
  codec.add_plain(piece.plain);
  allow_work();

  const EstimateInput input{std::span(blocks).first(count), codec.window(), ended};
  PieceHeader header{ended, count, std::nullopt};
  const bool whole_stream = ended && !started;
  const bool may_guess = limits.proven_later && whole_stream;
  const bool asks = doubt && ask_after == 0;
  if (asks) {
    ask_after = next_wait;
    next_wait *= 2;
  }
  ask_after -= std::min<std::uint64_t>(ask_after, piece.plain.size());
  Estimate estimated =
      asks ? estimate(input, parameters, may_guess, work) : Estimate{with_block_rule(input, *parameters)};
  if (work.is_spent()) return takes_too_long();
  const Parameters& best = estimated.parameters;
  const bool known = whole_stream && estimated.predicts_all;
  // Who proves it later opens all of it again if hope was in vain, so he hopes only for short streams, and
  // only as long as it seems to go well.
  const bool may_hope =
      !limits.proven_later || (!whole_stream && in_hope && plain_before + plain_taken <= kMostUnproven);
  const bool hopes = may_hope && ((known && !limits.proven_later) || is_hopeful(input, estimated, asks));
  in_hope = hopes;
  const std::optional<Parameters> before = started ? parameters : std::nullopt;
  parameters = best;
  started = true;
  if (!before || best != *before) header.parameters = best;
  std::optional<std::size_t> compressed;
  if (hopes) compressed = encode_in_hope(piece, header, input);
  if (!compressed && !asks && !asked_again) {
    // Several encoders may have written all so far, and the one that was taken may not have written this:
    // once in a stream, another look.
    asked_again = true;
    estimated = estimate(input, best, false, work);
    parameters = best;
    header.parameters = before && best == *before ? std::nullopt : std::optional(best);
  }
  if (work.is_spent()) return takes_too_long();
  if (!compressed && (hopes || !predictor_knows)) {
    // A predictor that was not asked about the piece before has to start anew. So has the decoder's, which
    // knows it by being told the parameters that it was told last.
    if (before && best.same_search(*before)) parameters = before;
    header.parameters = parameters;
  }
  if (!compressed) {
    if (may_guess) codec.record_nothing();
    if (limits.proven_later && !may_guess) record.answers.reserve(count_tokens(input.blocks));
    if (known && limits.proven_later)
      codec.expect_tokens(*parameters, input.blocks, record);
    else if (header.parameters)
      codec.set_parameters(*parameters);
    predictor_knows = true;
    KIN_TRY(encode(piece, header));
    compressed = may_guess ? bits.position() / 8 : rebuilt_size(piece);
  }
  if (!compressed) return Error(ErrorCode::unsupported, "deflate: comes out otherwise");
  blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count));
  KIN_TRY(account(piece, *compressed));
  // The next block reader needs the last 32 KiB.
  const std::size_t keep =
      std::min(plain_taken, plain.size() - std::min(plain.size(), std::size_t{kMostDistance}));
  plain.erase(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(keep));
  plain_before += keep;
  plain_taken -= keep;
  return piece;
}

// Before each piece, for all up to its end.
void Opener::State::allow_work() {
  const std::uint64_t bytes = plain_before + plain_taken + compressed_before + bits.position() / 8;
  work.most = limits.always_steps + limits.steps_per_byte * bytes;
  if (limits.search != nullptr) work.most = std::min(work.most, steps_told + limits.search->left());
}

void Opener::State::tell_work() {
  if (limits.search != nullptr) limits.search->spend(work.steps - steps_told);
  steps_told = work.steps;
}

// Most streams are of encoders that are predicted without fault. Of one that was so far, the tokens may be
// taken for the predictions: the decoder searches for itself, and tells if they are not.
bool Opener::State::is_hopeful(const EstimateInput& input, const Estimate& estimated, bool asked) {
  const Parser parser = estimated.parameters.parser;
  if (parser != Parser::greedy && parser != Parser::lazy) return false;
  if (asked) return estimated.none_wrong && codec.is_steady() && only_tokens(input);
  if (patience > 0) --patience;
  return patience == 0 && !doubt && codec.is_steady() && only_tokens(input);
}

// Nothing, and all as it was, if it was in vain.
std::optional<std::size_t> Opener::State::encode_in_hope(Piece& piece, const PieceHeader& header,
                                                         const EstimateInput& input) {
  StreamState codec_before = codec.save();
  PieceDecoder::Saved decoder_before = decoder.save();
  // What a greedy parser has inserted depends on all that went before, so its predictor follows.
  const bool follows = parameters->parser == Parser::greedy;
  if (follows && header.parameters) codec.set_parameters(*parameters);
  codec.expect_tokens(*parameters, input.blocks, record);
  predictor_knows = follows;
  if (encode(piece, header)) {
    if (follows) codec.stop_expecting();
    if (const auto compressed = rebuilt_size(piece)) return compressed;
  }
  codec.restore(std::move(codec_before));
  decoder.restore(std::move(decoder_before));
  record.clear();
  patience = next_patience;
  next_patience = std::min(2 * next_patience, kMostPatience);
  return std::nullopt;
}

Result<void> Opener::State::encode(Piece& piece, const PieceHeader& header) {
  WireWriter out;
  encode_piece_header(out, header);
  RangeEncoder encoder;
  for (std::size_t i = 0; i < header.blocks; ++i) {
    Block& block = blocks[i];
    block.end = end_kind(block, *parameters, codec.window(), codec.window().position());
    Frequencies used;
    if (!codec.code_block(encoder, block, block.start_bit, ended, used))
      return Error(ErrorCode::unsupported, "deflate: a block that cannot be coded");
  }
  if (ended) codec.code_padding(encoder, end_padding_bits, end_padding);
  out.raw(encoder.finish());
  piece.reconstruction = out.take();
  if (piece.plain.size() > kMostPiecePlain || piece.reconstruction.size() > kMostPieceReconstruction)
    return Error(ErrorCode::unsupported, "deflate: a piece that is too large");
  return {};
}

// How many of the kept bytes the piece gives back; nothing if it gives others.
std::optional<std::size_t> Opener::State::rebuilt_size(const Piece& piece) {
  record.rewind();
  const auto rebuilt = decoder.add(piece.plain, piece.reconstruction);
  record.clear();
  const ByteView kept = bits.kept();
  if (!rebuilt || rebuilt->size() > kept.size() || !equal(*rebuilt, kept.first(rebuilt->size())) ||
      (ended && rebuilt->size() != bits.position() / 8))
    return std::nullopt;
  return rebuilt->size();
}

// A piece that stands for so many of the kept bytes, which are needed no more.
Result<void> Opener::State::account(const Piece& piece, std::size_t compressed) {
  bits.keep_from(compressed);
  compressed_before += compressed;
  reconstruction_bytes += piece.reconstruction.size();
  doubt = piece.reconstruction.size() > compressed / kDoubt + 64;
  if (reconstruction_bytes > compressed_before / 100 * limits.most_percent + 64)
    return Error(ErrorCode::unsupported, "deflate: by an unknown encoder");
  return {};
}

}  // namespace kin::formats::deflate
