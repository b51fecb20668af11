#include "formats/deflate/parameters.h"

#include <array>

namespace kin::formats::deflate {

Parameters zlib_level(int level) {
  struct Row {
    std::uint16_t good, lazy, nice, chain;
  };
  static constexpr std::array<Row, 9> kRows = {{{4, 4, 8, 4},
                                                {4, 5, 16, 8},
                                                {4, 6, 32, 32},
                                                {4, 4, 16, 16},
                                                {8, 16, 32, 32},
                                                {8, 16, 128, 128},
                                                {8, 32, 128, 256},
                                                {32, 128, 258, 1024},
                                                {32, 258, 258, 4096}}};
  const Row& row = kRows[static_cast<std::size_t>(level) - 1];
  Parameters out;
  out.good = row.good;
  out.nice = row.nice;
  out.chain = row.chain;
  if (level <= 3) {
    out.parser = Parser::greedy;
    out.lazy = 0;
    out.insert_most = row.lazy;
    out.skip_far_threes = false;
  } else {
    out.lazy = row.lazy;
  }
  return out;
}

void encode_parameters(WireWriter& out, const Parameters& parameters) {
  out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(parameters.parser) |
                                   static_cast<unsigned>(parameters.hash) << 4));
  out.u8(static_cast<std::uint8_t>(parameters.hash_bits | (parameters.window_bits - 8U) << 5));
  out.u8(static_cast<std::uint8_t>((parameters.zlib_window ? 1U : 0U) |
                                   (parameters.skip_far_threes ? 2U : 0U) | (parameters.filtered ? 4U : 0U) |
                                   static_cast<unsigned>(parameters.flush) << 4));
  out.u8(static_cast<std::uint8_t>(parameters.block_log | static_cast<unsigned>(parameters.rule) << 5));
  if (parameters.parser < Parser::greedy) return;
  for (const std::uint16_t value :
       {parameters.good, parameters.lazy, parameters.nice, parameters.chain, parameters.insert_most})
    out.varint(value);
}

Parameters decode_parameters(WireReader& in) {
  Parameters out;
  const std::uint8_t kinds = in.u8(), bits = in.u8(), flags = in.u8(), blocks = in.u8();
  out.parser = static_cast<Parser>(kinds & 15);
  out.hash = static_cast<HashKind>(kinds >> 4);
  out.hash_bits = bits & 31;
  out.window_bits = static_cast<std::uint8_t>((bits >> 5) + 8);
  out.zlib_window = (flags & 1) != 0;
  out.skip_far_threes = (flags & 2) != 0;
  out.filtered = (flags & 4) != 0;
  out.flush = static_cast<FlushHistory>(flags >> 4);
  out.block_log = blocks & 31;
  out.rule = static_cast<BlockRule>(blocks >> 5);
  if (out.parser > Parser::optimal || out.hash > HashKind::chromium_4 || out.hash_bits < 8 ||
      out.hash_bits > 17 || (out.hash == HashKind::chromium_4 && out.hash_bits > 16) || out.window_bits < 9 ||
      out.flush > FlushHistory::reinsert || (flags & 8) != 0 || out.rule > BlockRule::gzip ||
      out.block_log < 7 || out.block_log > 20)
    in.fail();
  if (out.parser < Parser::greedy) return out;
  out.good = static_cast<std::uint16_t>(in.varint_up_to(258));
  out.lazy = static_cast<std::uint16_t>(in.varint_up_to(258));
  out.nice = static_cast<std::uint16_t>(in.varint_up_to(258));
  out.chain = static_cast<std::uint16_t>(in.varint_up_to(4096));
  out.insert_most = static_cast<std::uint16_t>(in.varint_up_to(258));
  if (out.nice < 3 || out.chain < 4 || (out.parser == Parser::optimal && out.rule != BlockRule::none))
    in.fail();
  return out;
}

}  // namespace kin::formats::deflate
