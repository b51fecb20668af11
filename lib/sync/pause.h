// Pause: between two exchanges over one link, which both ends keep so that what changes on one comes to the
// other at once. The end that began is to begin the next exchange too. The other one tells it when its store
// has changed. Each learns within minutes that the other one is gone, also where a link hangs and does not
// say so: the initiator asks now and then whether somebody is there.
//
// Pause is a machine of frames, as Session is; the caller tells the time. run_pause() runs it over a link.
// One thread at a time.
#pragma once

#include "lib/sync/link.h"

#include <chrono>
#include <functional>
#include <stop_token>

namespace kin::sync {

inline constexpr std::uint64_t kMostSigns = 10'000;  // of life, between two exchanges

class Pause {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Pause(bool is_initiator, Time now) : is_initiator_(is_initiator), heard_(now) {}

  // corrupt: that cannot come now, or it is too much.
  Result<void> receive(const Frame& frame, Time now);
  // What is to be sent; nothing: nothing is. io: the other end is gone.
  Result<std::optional<Bytes>> next(Time now);
  // The responder's store has changed, or may have.
  void set_changed() { has_changed_ = true; }
  // The other end's has: at the initiator.
  bool is_told() const { return is_told_; }
  bool is_initiator() const { return is_initiator_; }

 private:
  const bool is_initiator_;
  Time heard_;
  std::optional<Time> asked_;
  bool must_answer_ = false, has_changed_ = false, has_told_ = false, is_told_ = false;
  std::uint64_t signs_ = 0;
};

struct PauseOptions {
  int watch = -1;                                  // readable when something may have changed here
  std::function<bool()> has_changed;               // then: whether it has
  Pause::Time until;                               // of the initiator
  std::chrono::milliseconds write_within{30'000};  // a frame: a link that takes none for so long hangs
};

// An end that looks through its store, which may take long, says now and then over a link that was kept that
// it is there. In that time it reads nothing, and loses what the link does not take at once.
class SignsOfLife {
 public:
  SignsOfLife(const Link& link, bool is_initiator, Pause::Time now)
      : link_(link), is_initiator_(is_initiator), shown_(now) {}

  // As often as one likes.
  void show(Pause::Time now);

 private:
  const Link& link_;
  const bool is_initiator_;
  Pause::Time shown_;
};

enum class PauseEnd {
  here,    // this end's store has changed; at the initiator only
  there,   // the other end's has; at the responder: the other end begins an exchange
  time,    // it is `until`
  closed,  // the other end has closed the link
};

// io: the link is broken, or hangs. cancelled on a stop.
Result<PauseEnd> run_pause(Pause& pause, Link& link, const PauseOptions& options,
                           const std::stop_token& stop);

}  // namespace kin::sync
