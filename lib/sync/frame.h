// Frames: what travels between two ends of an exchange. docs/protocol.md has every byte.
#pragma once

#include "lib/sync/replica.h"

#include <optional>
#include <string>

namespace kin::sync {

inline constexpr std::uint8_t kProtocolVersion = 1;
inline constexpr std::size_t kMostFrameBytes = 64 << 20;

// On the wire; never reused.
enum class FrameType : std::uint8_t {
  hello = 1,       // the first frame of both ends
  records = 2,     // changes without content
  parcel = 3,      // new content
  ack = 4,         // how many parcels are on the disk by now
  need = 5,        // items that could not be made of what was sent: they are to be sent again, without bases
  symbols = 6,     // of the set of all items
  more = 7,        // so many symbols more
  difference = 8,  // the items of the other end that are wanted
  end = 9,         // all that this end had to send was sent
  done = 10,       // and is on the other end's disk
  error = 11,      // why this end gives up
  changed = 12,    // between exchanges: whether the store has changed since, and that somebody is there
  elsewise = 13,   // which items of the difference this end has in another state, and tells of itself
};

struct Frame {
  FrameType type = FrameType::hello;
  Bytes payload;
};

Bytes encode_frame(FrameType type, ByteView payload);

// Frames out of a stream that comes in pieces of any length.
class FrameReader {
 public:
  void add(ByteView bytes) { append(buffer_, bytes); }
  // Nothing: it is not all there yet. corrupt: this is no stream of frames.
  Result<std::optional<Frame>> next();
  bool has_greeted() const { return greeted_; }
  // By its first byte; the rest of it may still be on its way.
  bool next_is(FrameType type) const {
    return waiting() > 0 && buffer_[at_] == static_cast<std::uint8_t>(type);
  }
  // What is left of a frame that was not completed.
  std::size_t waiting() const { return buffer_.size() - at_; }

 private:
  Bytes buffer_;
  std::size_t at_ = 0;
  bool greeted_ = false;
};

enum class Direction : std::uint8_t { both = 0, mirror = 1, collect = 2 };

struct Hello {
  std::uint8_t kind = 0;  // of store
  bool dry_run = false, allow_deletes = false;
  bool to_initiator = false;  // of one direction: that one
  bool compare = false;       // whatever is known by history
  bool stays = false;         // the connection is kept after the exchange
  Direction direction = Direction::both;
  ReplicaId replica = 0;
  std::uint64_t nonce = 0;  // so that no two exchanges have the same key
  VersionSet seen;
  SetDigest digest{};
  std::uint64_t items = 0;
  // Contents that were cut off: how much of each is there.
  std::vector<std::pair<ObjectId, std::uint64_t>> held;
};
Bytes encode_hello(const Hello& hello);
// An error of what is in it begins with this: so do those of kin that do not know a flag.
inline constexpr std::string_view kGreeting = "the greeting";
Result<Hello> decode_hello(ByteView payload);

// The end of what one side sends; in a rehearsal, what the contents would have taken.
struct End {
  VersionSet seen;
  SetDigest digest{};
  std::uint64_t needs = 0;  // how many frames that asked for something this one comes after
  std::uint64_t planned_bytes = 0;
};
Bytes encode_end(const End& end);
Result<End> decode_end(ByteView payload);

}  // namespace kin::sync
