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

Parameters preset(int number) {
  if (number <= 9) return zlib_level(number);
  Parameters out = zlib_level(number == 10 ? 2 : 4);
  out.hash_bits = 14;
  out.nice = 258;
  out.chain = number == 10 ? 16 : 32;
  if (number == 10) out.insert_most = 4;
  return out;
}

namespace {

constexpr int kPresets = 11;

// The first byte has the number of a preset whose parser and limits these are, or 0.
int preset_of(const Parameters& parameters) {
  for (int number = 1; number <= kPresets; ++number) {
    const Parameters row = preset(number);
    if (row.parser == parameters.parser && row.good == parameters.good && row.lazy == parameters.lazy &&
        row.nice == parameters.nice && row.chain == parameters.chain &&
        row.insert_most == parameters.insert_most)
      return number;
  }
  return 0;
}

}  // namespace

void encode_parameters(WireWriter& out, const Parameters& parameters) {
  const int number = preset_of(parameters);
  out.u8(
      static_cast<std::uint8_t>(static_cast<unsigned>(number) | static_cast<unsigned>(parameters.hash) << 4));
  out.u8(static_cast<std::uint8_t>(parameters.hash_bits | (parameters.window_bits - 8U) << 5));
  out.u8(static_cast<std::uint8_t>((parameters.zlib_window ? 1U : 0U) |
                                   (parameters.skip_far_threes ? 2U : 0U) | (parameters.filtered ? 4U : 0U) |
                                   static_cast<unsigned>(parameters.flush) << 4));
  out.u8(static_cast<std::uint8_t>(parameters.block_log | static_cast<unsigned>(parameters.rule) << 5));
  if (number != 0) return;
  out.u8(static_cast<std::uint8_t>(parameters.parser));
  if (!parameters.has_limits()) return;
  for (const std::uint16_t value :
       {parameters.good, parameters.lazy, parameters.nice, parameters.chain, parameters.insert_most})
    out.varint(value);
}

Parameters decode_parameters(WireReader& in) {
  const std::uint8_t kinds = in.u8(), bits = in.u8(), flags = in.u8(), blocks = in.u8();
  const int number = kinds & 15;
  if (number > kPresets) in.fail();
  Parameters out = number == 0 || number > kPresets ? Parameters{} : preset(number);
  out.hash = static_cast<HashKind>(kinds >> 4);
  out.hash_bits = bits & 31;
  out.window_bits = static_cast<std::uint8_t>((bits >> 5) + 8);
  out.zlib_window = (flags & 1) != 0;
  out.skip_far_threes = (flags & 2) != 0;
  out.filtered = (flags & 4) != 0;
  out.flush = static_cast<FlushHistory>(flags >> 4);
  out.block_log = blocks & 31;
  out.rule = static_cast<BlockRule>(blocks >> 5);
  if (out.hash > HashKind::chromium_4 || out.hash_bits < 8 || out.hash_bits > 17 ||
      (out.hash == HashKind::chromium_4 && out.hash_bits > 16) || out.window_bits < 9 ||
      out.flush > FlushHistory::reinsert || (flags & 8) != 0 || out.rule > BlockRule::rsyncable ||
      out.block_log < 7 || out.block_log > 20)
    in.fail();
  if (number != 0) return out;
  out.parser = static_cast<Parser>(in.u8());
  if (out.parser > Parser::fast) in.fail();
  if (!out.has_limits()) return out;
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
