#include "lib/sync/pause.h"

#include "lib/base/file.h"

#include <poll.h>
#include <unistd.h>

namespace kin::sync {
namespace {

// On the wire, as the payload of `changed`.
constexpr std::uint8_t kNothing = 0, kChanged = 1, kAreYouThere = 2;

constexpr std::chrono::seconds kAskAfter{60}, kAnswerWithin{30};
constexpr std::chrono::seconds kGiveUpAfter{300};  // the initiator asks more often than that
constexpr int kStopMilliseconds = 200;

Bytes changed_frame(std::uint8_t what) { return encode_frame(FrameType::changed, ByteView(&what, 1)); }

Error out_of_turn() { return {ErrorCode::corrupt, "the other end sent a frame out of turn"}; }

Result<void> write_frame(const Link& link, ByteView left, Pause::Time until, const std::stop_token& stop) {
  while (!left.empty()) {
    if (stop.stop_requested()) return interrupted();
    if (std::chrono::steady_clock::now() >= until)
      return Error(ErrorCode::io, "the other end does not listen any more");
    pollfd fd{link.out, POLLOUT, 0};
    if (::poll(&fd, 1, kStopMilliseconds) <= 0) continue;
    const ssize_t written = ::write(link.out, left.data(), left.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR)
      return errno_error("cannot write to", "the other end");
    if (written > 0) left = left.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

// False: it is closed.
Result<bool> read_some(Link& link) {
  Bytes buffer(4096);
  const ssize_t got = ::read(link.in, buffer.data(), buffer.size());
  if (got < 0 && errno != EAGAIN && errno != EINTR) return errno_error("cannot read from", "the other end");
  if (got > 0) link.reader.add(ByteView(buffer).first(static_cast<std::size_t>(got)));
  return got != 0;
}

}  // namespace

Result<void> Pause::receive(const Frame& frame, Time now) {
  heard_ = now;
  if (frame.type == FrameType::error)
    return Error(ErrorCode::io, "the other end: " + printable(as_text(frame.payload)));
  if (++signs_ > kMostSigns) return out_of_turn();
  if (frame.type == FrameType::ack) return {};  // of the exchange before: its end has said it already
  if (frame.type != FrameType::changed) return out_of_turn();
  WireReader in(frame.payload);
  const std::uint8_t what = in.u8();
  if (is_initiator_ ? what > kChanged : what != kAreYouThere) in.fail();
  KIN_TRY(in.finish("word of a change"));
  asked_.reset();
  if (what == kChanged) is_told_ = true;
  if (what == kAreYouThere) must_answer_ = true;
  return {};
}

Result<std::optional<Bytes>> Pause::next(Time now) {
  if (is_initiator_) {
    if (asked_ && now - *asked_ > kAnswerWithin)
      return Error(ErrorCode::io, "the other end does not answer any more");
    if (asked_ || now - heard_ < kAskAfter) return std::optional<Bytes>();
    asked_ = now;
    return std::optional(changed_frame(kAreYouThere));
  }
  if (now - heard_ > kGiveUpAfter) return Error(ErrorCode::io, "nothing is heard of the other end any more");
  const bool must_tell = has_changed_ && !has_told_;
  if (!must_tell && !must_answer_) return std::optional<Bytes>();
  must_answer_ = false;
  has_told_ = has_told_ || must_tell;
  return std::optional(changed_frame(must_tell ? kChanged : kNothing));
}

// The initiator's is a question, which is answered while the responder waits for it. A pipe takes such a
// frame whole or not at all.
void SignsOfLife::show(Pause::Time now) {
  constexpr std::chrono::seconds kEvery{10};
  if (now - shown_ < (is_initiator_ ? kAskAfter : kEvery)) return;
  shown_ = now;
  const Bytes sign = changed_frame(is_initiator_ ? kAreYouThere : kNothing);
  static_cast<void>(::write(link_.out, sign.data(), sign.size()) > 0);
}

Result<PauseEnd> run_pause(Pause& pause, Link& link, const PauseOptions& options,
                           const std::stop_token& stop) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto is_over = [&] {
    return pause.is_initiator() ? pause.is_told() : link.reader.next_is(FrameType::hello);
  };
  for (;;) {
    // Some of it may have come with the end of the exchange.
    while (!is_over()) {
      KIN_TRY_ASSIGN(const auto frame, link.reader.next());
      if (!frame) break;
      KIN_TRY(pause.receive(*frame, now()));
    }
    if (is_over()) return PauseEnd::there;
    KIN_TRY_ASSIGN(const auto frame, pause.next(now()));
    if (frame) KIN_TRY(write_frame(link, *frame, now() + options.write_within, stop));
    if (pause.is_initiator() && now() >= options.until) return PauseEnd::time;
    if (stop.stop_requested()) return interrupted();
    pollfd fds[2] = {{link.in, POLLIN, 0}, {options.watch, POLLIN, 0}};
    if (::poll(fds, 2, kStopMilliseconds) <= 0) continue;
    if (fds[1].revents != 0 && options.has_changed()) {
      if (pause.is_initiator()) return PauseEnd::here;
      pause.set_changed();
    }
    if (fds[0].revents == 0) continue;
    KIN_TRY_ASSIGN(const bool is_open, read_some(link));
    if (!is_open) return PauseEnd::closed;
  }
}

}  // namespace kin::sync
