// What another end says, each part by itself: within whole frames, most inputs fail at what comes first. The
// first byte says which part the rest is.
#include "formats/formats.h"
#include "lib/base/check.h"
#include "lib/delta/codec.h"
#include "lib/sync/block_delta.h"
#include "lib/sync/frame.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/opened_content.h"
#include "lib/sync/parcel.h"
#include "lib/sync/record.h"

#include <cstdint>

namespace {

using namespace kin;
using namespace kin::sync;

void read_hello(ByteView input) {
  const auto hello = decode_hello(input);
  if (!hello) return;
  const auto again = decode_hello(encode_hello(*hello));
  KIN_CHECK(again && again->seen == hello->seen && again->held == hello->held);
}

void read_end(ByteView input) {
  const auto end = decode_end(input);
  if (!end) return;
  const auto again = decode_end(encode_end(*end));
  KIN_CHECK(again && again->seen == end->seen && again->needs == end->needs);
}

void read_records(ByteView input) {
  const auto records = decode_records(input);
  if (!records) return;
  // What is accepted names nothing outside of a store.
  for (const Record& record : *records)
    if (record.kind == Record::Kind::full || record.kind == Record::Kind::announce)
      KIN_CHECK(check_item(record.item).has_value());
  const auto again = decode_records(encode_records(*records));
  KIN_CHECK(again && again->size() == records->size());
}

void read_parcel(ByteView input) {
  const auto head = decode_parcel_head(input);
  if (!head || head->plain_bytes > (1 << 20)) return;  // 8 MiB for each input would make a slow fuzzer
  static const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(3);
  const Bytes prefix(std::min<std::size_t>(head->window_bytes, 4096), 'p');
  const auto pieces = decode_parcel(*head, prefix, *codec, &formats::all());
  if (!pieces) return;
  for (const Piece& piece : *pieces) {
    KIN_CHECK(check_item(piece.item).has_value());
    if (piece.form != Piece::Form::difference) KIN_CHECK(piece.content.size() == piece.length);
  }
}

void read_difference(ByteView input) {
  const Bytes former(4096, 'f');
  BlockPatcher patcher(std::make_unique<MemorySource>(former));
  const std::size_t covers = input.empty() ? 0 : input[0] * std::size_t{64};
  const auto played = patcher.play(input.subspan(std::min<std::size_t>(1, input.size())), covers);
  if (played) KIN_CHECK(played->size() == covers);
}

void read_signatures(ByteView input) {
  const auto signatures = decode_signatures(input);
  if (!signatures.empty()) KIN_CHECK(decode_signatures(encode_signatures(signatures)) == signatures);
}

void read_opened(ByteView input) {
  const std::size_t size = input.empty() ? 0 : input[0] * std::size_t{64};
  const auto content =
      close_content(formats::all(), input.subspan(std::min<std::size_t>(1, input.size())), size);
  if (content) KIN_CHECK(content->size() == size);
}

void read_subscriptions(ByteView input) {
  const auto words = maildir::parse_subscriptions(input);
  if (!words) return;
  const std::string text = maildir::format_subscriptions(*words);
  KIN_CHECK(maildir::parse_subscriptions(as_bytes(text)) == words);
}

constexpr void (*kParts[])(ByteView) = {read_hello,      read_end,        read_records, read_parcel,
                                        read_difference, read_signatures, read_opened,  read_subscriptions};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) kParts[data[0] % std::size(kParts)]({data + 1, size - 1});
  return 0;
}
