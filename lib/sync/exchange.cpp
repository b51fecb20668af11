#include "lib/sync/exchange.h"

#include "lib/base/file.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace kin::sync {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAheadBytes = 64 << 10;  // ready to be written: more would only be lost with the link
constexpr int kTickMilliseconds = 200;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

class Exchange {
 public:
  Exchange(Session& session, Link& link, const ExchangeOptions& options, const std::stop_token& stop,
           ExchangeTotals& totals)
      : session_(session), link_(link), options_(options), stop_(stop), totals_(totals) {
    for (const int fd : {link_.in, link_.out}) {
      const int flags = ::fcntl(fd, F_GETFL);
      if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
  }

  Result<void> run() {
    auto result = loop();
    if (result) return result;
    session_.abandon();
    if (result.error().code() != ErrorCode::cancelled && !link_is_gone_) tell(result.error());
    return result;
  }

 private:
  Result<void> loop() {
    KIN_TRY(take_frames());
    for (;;) {
      if (stop_.stop_requested()) return interrupted();
      KIN_TRY(fill());
      if (session_.finished() && waiting() == 0) return {};
      if (options_.on_tick && seconds_since(ticked_) * 1000 >= kTickMilliseconds) {
        ticked_ = Clock::now();
        options_.on_tick();
      }
      const std::size_t allowed = allowed_bytes();
      pollfd fds[2] = {{link_.in, POLLIN, 0}, {waiting() > 0 && allowed > 0 ? link_.out : -1, POLLOUT, 0}};
      // First what there is to do at once; then, with nothing to read, what was read is made; then it waits.
      int ready = ::poll(fds, 2, 0);
      if (ready == 0 || (fds[0].revents == 0 && ready >= 0)) {
        KIN_TRY(session_.settle());
        KIN_TRY(fill());
        if (session_.finished() && waiting() == 0) return {};
        if (ready == 0) {
          fds[1].fd = waiting() > 0 && allowed > 0 ? link_.out : -1;
          const bool is_held_back = waiting() > 0 && allowed == 0;
          const Clock::time_point before = Clock::now();
          ready = ::poll(fds, 2, is_held_back ? 10 : kTickMilliseconds);
          if (session_.awaits_ack()) waited_ += seconds_since(before);
          silent_ += seconds_since(before);
        }
      }
      if (ready < 0 && errno != EINTR) return errno_error("cannot wait for", "the other end");
      const bool may_be_given_up = options_.was_kept || (session_.keeps_link() && link_.reader.has_greeted());
      if (ready <= 0 && may_be_given_up && silent_ > options_.most_silent_seconds)
        return gone(
            Error(ErrorCode::io, "nothing is heard of the other end any more; what had come is kept"));
      if (ready <= 0) continue;
      silent_ = 0;
      if (fds[1].fd >= 0 && fds[1].revents != 0) KIN_TRY(write_some(allowed));
      if (fds[0].revents != 0) KIN_TRY(read_some());
    }
  }

  std::size_t waiting() const { return out_.size() - at_; }

  Result<void> fill() {
    while (waiting() < kAheadBytes) {
      KIN_TRY_ASSIGN(const auto frame, session_.next());
      if (!frame) return {};
      if (at_ == out_.size() || at_ > kAheadBytes) {  // what was written needs not stay
        out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ = 0;
      }
      append(out_, *frame);
    }
    return {};
  }

  // What was not used of a second is not saved up for the next one.
  std::size_t allowed_bytes() {
    if (options_.limit_bytes_per_second == 0) return kAheadBytes;
    const auto rate = static_cast<double>(options_.limit_bytes_per_second);
    const Clock::time_point now = Clock::now();
    credit_bytes_ =
        std::min(credit_bytes_ + rate * std::chrono::duration<double>(now - credited_).count(), rate);
    credited_ = now;
    return credit_bytes_ < 1 ? 0 : std::min(static_cast<std::size_t>(credit_bytes_), kAheadBytes);
  }

  Result<void> write_some(std::size_t allowed) {
    const ByteView ready = ByteView(out_).subspan(at_, std::min(waiting(), allowed));
    const ssize_t written = ::write(link_.out, ready.data(), ready.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (written < 0) {
      // It may have said why before it closed its end: that is worth more than this error.
      at_ = out_.size();
      if (errno == EPIPE) return {};
      return gone(errno_error("cannot write to", "the other end"));
    }
    at_ += static_cast<std::size_t>(written);
    totals_.bytes_out += static_cast<std::uint64_t>(written);
    credit_bytes_ -= static_cast<double>(written);
    return {};
  }

  Result<void> read_some() {
    const ssize_t got = ::read(link_.in, buffer_.data(), buffer_.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0) return gone(errno_error("cannot read from", "the other end"));
    if (got == 0) {
      if (session_.finished()) {
        at_ = out_.size();
        return {};
      }
      return gone(
          Error(ErrorCode::io, totals_.bytes_in == 0
                                   ? "the other end closed the connection before it said anything"
                                   : "the connection to the other end broke off; what had come is kept"));
    }
    totals_.bytes_in += static_cast<std::uint64_t>(got);
    link_.reader.add(ByteView(buffer_).first(static_cast<std::size_t>(got)));
    KIN_TRY(take_frames());
    // Only the time that was spent waiting counts: with all of it, one that takes long to make things small
    // would take the link to be slow, and try harder still.
    if (session_.acked_bytes() > 0)
      session_.set_speed(
          static_cast<std::uint64_t>(static_cast<double>(session_.acked_bytes()) / std::max(waited_, 1e-3)) +
          1);
    return {};
  }

  Result<void> take_frames() {
    for (;;) {
      if (session_.finished() && session_.keeps_link()) return {};  // the rest is for the pause
      KIN_TRY_ASSIGN(const auto frame, link_.reader.next());
      if (!frame) return {};
      KIN_TRY(session_.receive(*frame));
      // Both sides may hold much that the other waits for.
      KIN_TRY(fill());
    }
  }

  Error gone(Error error) {
    link_is_gone_ = true;
    return error;
  }

  // As well as it goes: the other end may not listen.
  void tell(const Error& error) {
    const Bytes frame = encode_frame(FrameType::error, as_bytes(error.message()));
    ByteView left = frame;
    for (int turn = 0; turn < 20 && !left.empty(); ++turn) {
      pollfd fd{link_.out, POLLOUT, 0};
      if (::poll(&fd, 1, 100) <= 0) continue;
      const ssize_t written = ::write(link_.out, left.data(), left.size());
      if (written < 0 && errno != EAGAIN && errno != EINTR) return;
      if (written > 0) left = left.subspan(static_cast<std::size_t>(written));
    }
  }

  Session& session_;
  Link& link_;
  const ExchangeOptions& options_;
  const std::stop_token& stop_;
  ExchangeTotals& totals_;
  Bytes buffer_ = Bytes(64 << 10);
  Bytes out_;
  std::size_t at_ = 0;
  bool link_is_gone_ = false;
  Clock::time_point ticked_ = Clock::now(), credited_ = Clock::now();
  double credit_bytes_ = 0;  // may be written, by the limit
  double waited_ = 0;        // seconds in which something was on its way, and there was nothing to do
  double silent_ = 0;        // seconds in which it could neither read nor write
};

}  // namespace

Result<void> run_exchange(Session& session, Link& link, const ExchangeOptions& options,
                          const std::stop_token& stop, ExchangeTotals& totals) {
  return Exchange(session, link, options, stop, totals).run();
}

}  // namespace kin::sync
