#include "formats/bzip2/symbols.h"

#include <cstring>
#include <utility>

namespace kin::formats::bzip2 {
namespace {

// The bytes that occur, in order: how the list begins.
Bytes first_list(const std::array<bool, 256>& used) {
  Bytes out;
  for (std::size_t byte = 0; byte < used.size(); ++byte)
    if (used[byte]) out.push_back(static_cast<std::uint8_t>(byte));
  return out;
}

void append_run(std::vector<std::uint16_t>& values, std::size_t run) {
  for (; run > 0; run = (run - 1) / 2) values.push_back(run % 2 == 1 ? kRunA : kRunB);
}

}  // namespace

Symbols make_symbols(ByteView last_column) {
  Symbols out;
  for (const std::uint8_t byte : last_column) out.used[byte] = true;
  Bytes list = first_list(out.used);
  out.alphabet = list.size() + 2;
  out.values.reserve(last_column.size() + 1);
  std::size_t run = 0;
  for (const std::uint8_t byte : last_column) {
    if (byte == list[0]) {
      ++run;
      continue;
    }
    append_run(out.values, run);
    run = 0;
    std::uint8_t moved = list[0];
    std::size_t place = 0;
    do std::swap(moved, list[++place]);
    while (moved != byte);
    list[0] = byte;
    out.values.push_back(static_cast<std::uint16_t>(place + 1));
  }
  append_run(out.values, run);
  out.values.push_back(static_cast<std::uint16_t>(out.alphabet - 1));
  return out;
}

Result<Bytes> undo_symbols(const Symbols& symbols, std::size_t most_bytes) {
  const Error too_long(ErrorCode::corrupt, "bzip2: a block longer than its stream says");
  Bytes list = first_list(symbols.used);
  Bytes out;
  std::size_t run = 0, digit = 1;
  for (const std::uint16_t value : symbols.values) {
    if (value <= kRunB) {
      run += digit << value;
      digit *= 2;
      if (run > most_bytes) return too_long;
      continue;
    }
    if (out.size() + run > most_bytes) return too_long;
    out.insert(out.end(), run, list[0]);
    run = 0;
    digit = 1;
    if (value == symbols.alphabet - 1) break;
    if (out.size() == most_bytes) return too_long;
    const std::uint8_t byte = list[value - 1U];
    std::memmove(list.data() + 1, list.data(), value - 1U);
    list[0] = byte;
    out.push_back(byte);
  }
  if (out.empty()) return Error(ErrorCode::corrupt, "bzip2: an empty block");
  return out;
}

}  // namespace kin::formats::bzip2
