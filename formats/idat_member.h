// IdatMember: the image of a PNG file as a coded member, and back.
//
// The image is one zlib stream that was cut into chunks, with lengths, types and sums between them: a deflate
// member would have holes. So this is a coding of its own, for all of the chunks. Its plain bytes are the
// filtered rows of pixels. Types and sums follow from them; the corrections are
//
//     raw(2)               the zlib header
//     then, in the order in which they are needed:
//     u8 1, varint         the length of the next chunk
//     u8 2, blob           more of the deflate stream's corrections
//     and at the end:
//     u8 3, varint, bytes  what follows the deflate stream: 0, the Adler-32 of the plain bytes; otherwise
//                          n + 1, and these n bytes
//
// The length of a chunk comes before what its bytes are rebuilt from. docs/format.md says the same.
#pragma once

#include "formats/checksums.h"
#include "formats/deflate_member.h"

#include <memory>

namespace kin::formats {

class IdatMember : public MemberSource {
 public:
  // The first IDAT chunk begins where `in` stands. The limits must outlive this.
  IdatMember(PeekSource& in, const ContainerLimits& limits);
  ~IdatMember() override;

  // Opens the image as far as memory allows. False: it cannot be opened, and `in` stands where it stood.
  Result<bool> prepare();
  bool takes_too_long() const { return deflate_.takes_too_long(); }

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  Bytes take_corrections() override;
  // After the end was read, when `in` stands behind the last chunk.
  std::uint64_t encoded_bytes() const override;

 private:
  class Chunks;

  Result<bool> open_stream();
  Result<void> read_trailer();

  const std::unique_ptr<Chunks> chunks_;
  PeekSource stream_;  // what is in them
  DeflateMember deflate_;
  Adler32 sum_;
  Bytes zlib_header_;  // until it is taken
  Bytes trailer_;      // as the corrections say it
};

std::unique_ptr<ByteSource> rebuild_idat(std::unique_ptr<ByteSource> plain,
                                         std::unique_ptr<ByteSource> corrections,
                                         SearchBudget* search = nullptr);

}  // namespace kin::formats
