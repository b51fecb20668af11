// DeflateMember: a raw deflate stream in a container as a coded member, and back.
//
// Corrections are the reconstructions of formats/deflate, piece by piece: varint plain bytes, varint
// reconstruction bytes, reconstruction.
#pragma once

#include "formats/deflate/opener.h"
#include "lib/container/container_format.h"

#include <deque>
#include <memory>

namespace kin::formats {

class DeflateMember : public MemberSource {
 public:
  // The stream begins where `in` stands, and ends before `most_raw` bytes. `hint` is that of the member
  // before. The limits must outlive this.
  DeflateMember(PeekSource& in, std::uint64_t most_raw, const ContainerLimits& limits,
                std::shared_ptr<const deflate::Opener::Hint> hint = {});

  // Opens the stream as far as memory allows. False: it cannot be opened, and `in` stands where it stood.
  Result<bool> prepare();

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  Bytes take_corrections() override;
  // After the end was read, when `in` stands behind the stream.
  std::uint64_t encoded_bytes() const override { return opener_.compressed_bytes(); }

  // Of a prepare() that gave false: whether it took too long; bytes read, and bytes inflated.
  bool takes_too_long() const { return opener_.work().is_spent(); }
  std::uint64_t tried_bytes() const { return tried_bytes_; }
  std::shared_ptr<const deflate::Opener::Hint> hint() const { return opener_.hint(); }

 private:
  Result<std::size_t> read_raw(std::span<std::uint8_t> into);
  Result<void> next_piece();

  PeekSource& in_;
  std::uint64_t raw_left_;
  const ContainerLimits& limits_;
  bool preparing_ = false;
  Bytes raw_;  // read while preparing
  std::uint64_t tried_bytes_ = 0;
  deflate::Opener opener_;
  bool ended_ = false;
  std::deque<Bytes> plain_;
  std::size_t at_ = 0;  // in the first of them
  std::size_t plain_bytes_ = 0;
  Bytes corrections_;
};

std::unique_ptr<ByteSource> rebuild_deflate(std::unique_ptr<ByteSource> plain,
                                            std::unique_ptr<ByteSource> corrections,
                                            SearchBudget* search = nullptr);

}  // namespace kin::formats
