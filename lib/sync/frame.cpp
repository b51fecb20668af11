#include "lib/sync/frame.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::string_view kMagic = "kin";
constexpr std::size_t kMostHeld = 1000;

// What a login shell prints before kin starts comes first on the same stream: it is shown, since it is the
// reason.
Error no_greeting(ByteView got) {
  return Error(ErrorCode::corrupt, "the other end does not speak kin's protocol; it says: " +
                                       printable(as_text(got.first(std::min<std::size_t>(got.size(), 200)))));
}

}  // namespace

Bytes encode_frame(FrameType type, ByteView payload) {
  WireWriter out;
  out.u8(static_cast<std::uint8_t>(type));
  out.blob(payload);
  return out.take();
}

Result<std::optional<Frame>> FrameReader::next() {
  const ByteView all = ByteView(buffer_).subspan(at_);
  // The first frame is a hello, whose length and magic are known enough to tell it from all else.
  if (!greeted_ && !all.empty()) {
    if (all[0] != static_cast<std::uint8_t>(FrameType::hello) &&
        all[0] != static_cast<std::uint8_t>(FrameType::error))
      return no_greeting(all);
    greeted_ = true;
  }
  std::size_t length = 0, used = 1;
  for (int shift = 0;; shift += 7, ++used) {
    if (used >= all.size()) return std::optional<Frame>();
    if (shift > 28) return Error(ErrorCode::corrupt, "a frame of a length that cannot be");
    length |= static_cast<std::size_t>(all[used] & 0x7f) << shift;
    if ((all[used] & 0x80) == 0) break;
  }
  ++used;
  if (length > kMostFrameBytes) return Error(ErrorCode::corrupt, "a frame that is too long");
  if (all.size() - used < length) return std::optional<Frame>();
  Frame frame;
  if (all[0] < static_cast<std::uint8_t>(FrameType::hello) ||
      all[0] > static_cast<std::uint8_t>(FrameType::elsewise))
    return Error(ErrorCode::corrupt, "a frame of an unknown type");
  frame.type = static_cast<FrameType>(all[0]);
  const ByteView payload = all.subspan(used, length);
  frame.payload.assign(payload.begin(), payload.end());
  at_ += used + length;
  if (at_ == buffer_.size() || at_ > (1 << 20)) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

Bytes encode_hello(const Hello& hello) {
  WireWriter out;
  out.raw(as_bytes(kMagic));
  out.u8(kProtocolVersion);
  out.u8(hello.kind);
  out.u8(static_cast<std::uint8_t>((hello.dry_run ? 1 : 0) | (hello.allow_deletes ? 2 : 0) |
                                   (hello.to_initiator ? 4 : 0) | (hello.compare ? 8 : 0) |
                                   static_cast<int>(hello.direction) << 4 | (hello.stays ? 128 : 0)));
  out.u64(hello.replica);
  out.u64(hello.nonce);
  out.u64(hello.digest[0]);
  out.u64(hello.digest[1]);
  out.varint(hello.items);
  hello.seen.encode(out);
  const std::size_t held = std::min(hello.held.size(), kMostHeld);
  out.varint(held);
  for (std::size_t i = 0; i < held; ++i) {
    out.raw(hello.held[i].first.bytes);
    out.varint(hello.held[i].second);
  }
  return out.take();
}

Result<Hello> decode_hello(ByteView payload) {
  WireReader in(payload);
  if (as_text(in.raw(kMagic.size())) != kMagic) return no_greeting(payload);
  if (const std::uint8_t version = in.u8(); version != kProtocolVersion)
    return Error(ErrorCode::unsupported, "the other end speaks version " + std::to_string(version) +
                                             " of the protocol, and this kin version " +
                                             std::to_string(kProtocolVersion) +
                                             ": both must be of the same release");
  Hello hello;
  hello.kind = in.u8();
  const std::uint8_t flags = in.u8();
  hello.dry_run = (flags & 1) != 0;
  hello.allow_deletes = (flags & 2) != 0;
  hello.to_initiator = (flags & 4) != 0;
  hello.compare = (flags & 8) != 0;
  hello.stays = (flags & 128) != 0;
  const int direction = flags >> 4 & 7;
  if (direction > static_cast<int>(Direction::collect)) in.fail();
  hello.direction = static_cast<Direction>(direction);
  hello.replica = in.u64();
  hello.nonce = in.u64();
  if (hello.replica == 0) in.fail();
  hello.digest = {in.u64(), in.u64()};
  hello.items = in.varint_up_to(std::uint64_t{1} << 40);
  hello.seen = VersionSet::decode(in);
  const std::size_t held = in.count(33);
  if (held > kMostHeld) in.fail();
  for (std::size_t i = 0; i < held && !in.failed(); ++i) {
    ObjectId object;
    object.bytes = in.array<32>();
    hello.held.emplace_back(object, in.varint());
  }
  KIN_TRY(in.finish(kGreeting));
  return hello;
}

Bytes encode_end(const End& end) {
  WireWriter out;
  out.u64(end.digest[0]);
  out.u64(end.digest[1]);
  out.varint(end.needs);
  out.varint(end.planned_bytes);
  end.seen.encode(out);
  return out.take();
}

Result<End> decode_end(ByteView payload) {
  WireReader in(payload);
  End end;
  end.digest = {in.u64(), in.u64()};
  end.needs = in.varint();
  end.planned_bytes = in.varint();
  end.seen = VersionSet::decode(in);
  KIN_TRY(in.finish("the end of an exchange"));
  return end;
}

}  // namespace kin::sync
