// QuotedPrintableMember: quoted-printable text, as mail has it, as a coded member; and back.
//
// Problem: which bytes an encoder escaped and where it broke lines is its own choice, and has to come back.
// Idea: any text is a sequence of plain bytes, each as it is or escaped, with soft line breaks between them.
// A rule with a few parameters, taken from the text itself, predicts each of these choices: bytes of one kind
// are mostly treated alike, and lines are broken where the next byte would not fit. The corrections are the
// parameters and the places where the encoder chose otherwise. So every text can be opened, and whether it is
// worth it shows in how long the corrections are. Rules of known encoders were not modelled: those that break
// lines between words take two bytes for each line, and all others next to nothing.
#pragma once

#include "lib/container/container_format.h"

#include <memory>
#include <optional>
#include <utility>

namespace kin::formats {

class QuotedPrintableMember : public MemberSource {
 public:
  // Nothing if opening `text` does not pay. What it gives has been rebuilt and compared.
  static Result<std::optional<QuotedPrintableMember>> open(ByteView text);

  Result<std::size_t> read(std::span<std::uint8_t> into) override { return plain_->read(into); }
  Bytes take_corrections() override { return std::exchange(corrections_, {}); }
  std::uint64_t encoded_bytes() const override { return encoded_bytes_; }

 private:
  QuotedPrintableMember(Bytes plain, Bytes corrections, std::uint64_t encoded_bytes)
      : plain_(std::make_unique<MemorySource>(std::move(plain))),
        corrections_(std::move(corrections)),
        encoded_bytes_(encoded_bytes) {}

  std::unique_ptr<MemorySource> plain_;
  Bytes corrections_;
  std::uint64_t encoded_bytes_;
};

std::unique_ptr<ByteSource> rebuild_quoted_printable(std::unique_ptr<ByteSource> plain,
                                                     std::unique_ptr<ByteSource> corrections,
                                                     SearchBudget* search = nullptr);

}  // namespace kin::formats
