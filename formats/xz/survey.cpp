#include "formats/xz/survey.h"

#include "formats/xz/chunk_header.h"
#include "formats/xz/frame.h"
#include "formats/xz/match_finder.h"

#include <algorithm>

namespace kin::formats::xz {
namespace {

// Past a block, if it is one.
bool survey_block(ByteView& rest, CheckId check, Survey& out) {
  const std::size_t header_bytes = block_header_bytes(rest[0]);
  if (header_bytes == 0 || rest.size() < header_bytes) return false;
  const auto dictionary = parse_block_header(rest.first(header_bytes));
  if (!dictionary) return false;
  std::size_t at = header_bytes;
  std::uint64_t plain_bytes = 0;
  bool ended = false;
  while (!ended && at < rest.size()) {
    const auto chunk = parse_chunk_header(rest.subspan(at, std::min(rest.size() - at, kMostChunkHeader)));
    if (!chunk) break;
    ended = chunk->is_end;
    plain_bytes += chunk->plain_bytes;
    at += chunk->header_bytes + chunk->encoded_bytes;
  }
  Settings settings;
  settings.dictionary_bytes = *dictionary;
  out.plain_bytes += plain_bytes;
  out.table_bytes = std::max(out.table_bytes, table_bytes(settings, plain_bytes));
  at += padding_of(at) + check_bytes(check);
  if (!ended || at >= rest.size()) return false;
  rest = rest.subspan(at);
  return true;
}

}  // namespace

Survey survey_streams(ByteView file) {
  Survey out;
  const auto check = parse_stream_header(file);
  if (!check) return out;
  ByteView rest = file.subspan(kStreamHeaderBytes);
  while (!rest.empty() && survey_block(rest, *check, out)) continue;
  return out;
}

}  // namespace kin::formats::xz
