// What every coding must stand: streams and corrections with bytes changed, cut off, or of other content.
#pragma once

#include "tests/support/coded_stream.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

namespace kin::testing {

struct StreamCoding {
  std::function<Result<Opened>(const Bytes& file)> open;
  std::function<Result<Bytes>(const Bytes& plain, const Bytes& corrections)> rebuild;
};

inline void check_refused_or_exact(const Bytes& file, const StreamCoding& coding) {
  const auto opened = coding.open(file);
  if (!opened) {
    if (opened.error().code() != ErrorCode::corrupt && opened.error().code() != ErrorCode::unsupported)
      FAIL(opened.error().message());
    return;
  }
  const Bytes back = value_of(coding.rebuild(opened->plain, opened->corrections));
  if (!equal(back, ByteView(file).first(opened->encoded_bytes))) FAIL("other bytes came back");
}

// Refused, or they come back exactly.
inline void check_each_bit(const std::vector<Bytes>& streams, const StreamCoding& coding) {
  for (const Bytes& whole : streams)
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      Bytes changed = whole;
      changed[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      check_refused_or_exact(changed, coding);
    }
}

// An error or other bytes, and an end.
inline void check_damaged_corrections(const std::vector<Bytes>& streams, const StreamCoding& coding) {
  for (const Bytes& whole : streams) {
    const Opened opened = value_of(coding.open(whole));
    for (std::size_t at = 0; at < opened.corrections.size(); ++at) {
      for (const std::uint8_t flip : {0x01, 0x04, 0x10, 0x80, 0xff}) {
        Bytes changed = opened.corrections;
        changed[at] ^= flip;
        const auto back = coding.rebuild(opened.plain, changed);
        if (back && back->size() > 16 * whole.size()) FAIL("far more than there was");
      }
      const Bytes cut(opened.corrections.begin(),
                      opened.corrections.begin() + static_cast<std::ptrdiff_t>(at));
      CHECK(code_of(coding.rebuild(opened.plain, cut)) == ErrorCode::corrupt);
    }
  }
}

// Corrupt if it is shorter or longer; otherwise at least not the same bytes.
inline void check_other_content(const std::vector<Bytes>& streams, const StreamCoding& coding) {
  for (const Bytes& whole : streams) {
    const Opened opened = value_of(coding.open(whole));
    CHECK(code_of(coding.rebuild({}, opened.corrections)) == ErrorCode::corrupt);
    Bytes longer = opened.plain;
    longer.push_back('x');
    CHECK(code_of(coding.rebuild(longer, opened.corrections)) == ErrorCode::corrupt);
    // As long as it was, with more and with fewer different bytes.
    for (const Bytes& other : {random_bytes(1, opened.plain.size()), Bytes(opened.plain.size(), 'x')}) {
      const auto back = coding.rebuild(other, opened.corrections);
      if (back) CHECK((*back != whole));
    }
  }
}

inline void check_later_version(const Bytes& stream, const StreamCoding& coding) {
  Opened opened = value_of(coding.open(stream));
  opened.corrections[0] = 2;
  CHECK(code_of(coding.rebuild(opened.plain, opened.corrections)) == ErrorCode::unsupported);
}

}  // namespace kin::testing
