// Base64Member: base64 text, as mail has it, as a coded member; and back.
//
// Lines that are nothing but base64 characters, whatever their lengths and ends, are a member: the bytes that
// they decode to, and corrections that say how the characters were laid out. The member ends before the first
// line that is none, so it never turns out later that it cannot be opened.
//
// Corrections (docs/format.md): the bits that were left over, then runs of equal lines.
#pragma once

#include "lib/base/wire.h"
#include "lib/container/container_format.h"

#include <memory>

namespace kin::formats {

class Base64Member : public MemberSource {
 public:
  // The text begins where `in` stands, at the beginning of a line.
  explicit Base64Member(PeekSource& in) : in_(in) {}

  // Whether lines of base64 begin here, with this many characters at least.
  static Result<bool> begins(PeekSource& in, std::size_t least);

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  // All of them at the end, and nothing before.
  Bytes take_corrections() override;
  // After the end was read, when `in` stands behind the text.
  std::uint64_t encoded_bytes() const override { return encoded_bytes_; }
  bool ended_with_line() const { return ended_with_line_; }

 private:
  struct Run {
    std::uint64_t lines = 0;
    std::uint64_t size = 0;  // of each, without its end
    std::uint8_t line_end = 0;
  };

  Result<void> next_piece();
  std::size_t take_line(ByteView text);
  std::size_t count_padding(ByteView text, std::uint64_t characters) const;
  bool add_line(std::uint64_t size, std::uint8_t line_end);
  void write_run();
  Result<void> decode();
  void finish();

  PeekSource& in_;
  bool ended_ = false, ended_with_line_ = true, in_long_line_ = false;
  std::uint64_t characters_ = 0, padding_ = 0;
  std::uint64_t encoded_bytes_ = 0;
  Bytes undecoded_;
  Bytes ready_;
  std::size_t at_ = 0;  // in what is ready
  Run run_;
  WireWriter runs_;  // those before it
  Bytes corrections_;
};

std::unique_ptr<ByteSource> rebuild_base64(std::unique_ptr<ByteSource> plain,
                                           std::unique_ptr<ByteSource> corrections,
                                           SearchBudget* search = nullptr);

}  // namespace kin::formats
