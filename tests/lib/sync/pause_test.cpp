#include "lib/sync/pause.h"

#include "lib/sync/exchange.h"
#include "tests/support/sync_pair.h"

#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

namespace kin::testing {
namespace {

using namespace std::chrono_literals;
using sync::Frame;
using sync::FrameType;
using sync::Pause;
using sync::PauseEnd;

const Pause::Time kStart = std::chrono::steady_clock::now();

Frame frame_of(ByteView bytes) {
  sync::FrameReader reader;
  reader.add(sync::encode_frame(FrameType::hello, {}));  // the first of a link
  value_of(reader.next());
  reader.add(bytes);
  return *value_of(reader.next());
}

Frame changed(std::uint8_t what) { return {FrameType::changed, {what}}; }

// All that one has to say to the other. How many bytes.
std::size_t pass(Pause& from, Pause& to, Pause::Time now) {
  std::size_t bytes = 0;
  while (const auto frame = value_of(from.next(now))) {
    bytes += frame->size();
    require_ok(to.receive(frame_of(*frame), now));
  }
  return bytes;
}

TEST_CASE("a change at the other end is told at once, and once", "[sync]") {
  Pause a(true, kStart), b(false, kStart);
  CHECK(pass(a, b, kStart) + pass(b, a, kStart) == 0);
  b.set_changed();
  b.set_changed();
  CHECK(pass(b, a, kStart) == 3);
  CHECK(a.is_told());
  b.set_changed();
  CHECK(pass(b, a, kStart) == 0);
}

TEST_CASE("two ends that have nothing to say stay together, and a silent one is given up", "[sync]") {
  Pause a(true, kStart), b(false, kStart);
  Pause::Time now = kStart;
  std::size_t bytes = 0;
  for (; now < kStart + 24h; now += 10s) bytes += pass(a, b, now) + pass(b, a, now);
  CHECK(bytes > 0);
  CHECK(bytes <= 24 * 60 * 6);  // a question and its answer a minute
  CHECK_FALSE(a.is_told());
  // From here on the link takes all and brings nothing.
  CHECK(a.next(now + 61s));
  CHECK(a.next(now + 90s));
  CHECK(a.next(now + 92s).error().code() == ErrorCode::io);
  CHECK(b.next(now + 230s));
  CHECK(b.next(now + 311s).error().code() == ErrorCode::io);
}

TEST_CASE("what cannot come in a pause is refused, and a flood too", "[sync]") {
  Pause a(true, kStart), b(false, kStart);
  CHECK(a.receive({FrameType::ack, {1}}, kStart));
  CHECK_FALSE(a.receive(changed(2), kStart));
  CHECK_FALSE(a.receive({FrameType::changed, {}}, kStart));
  CHECK_FALSE(a.receive({FrameType::changed, {1, 0}}, kStart));
  CHECK_FALSE(a.receive({FrameType::hello, {}}, kStart));
  CHECK_FALSE(b.receive(changed(0), kStart));
  CHECK_FALSE(b.receive(changed(1), kStart));
  CHECK_FALSE(b.receive({FrameType::end, {}}, kStart));
  CHECK(a.receive({FrameType::error, {'x'}}, kStart).error().message() == "the other end: x");
  for (Pause* const end : {&a, &b}) {
    std::uint64_t taken = 0;
    while (taken < 2 * sync::kMostSigns && end->receive(changed(end == &a ? 0 : 2), kStart)) ++taken;
    CHECK(taken < sync::kMostSigns);
    CHECK(taken > 5000);
  }
}

// A link whose other end is in the hands of the test.
struct LinkInHand {
  LinkInHand() {
    REQUIRE(::pipe(in.data()) == 0);
    REQUIRE(::pipe(out.data()) == 0);
    link.in = in[0];
    link.out = out[1];
    say(sync::encode_frame(FrameType::hello, {}));
    std::array<std::uint8_t, 16> buffer{};
    const ssize_t got = ::read(in[0], buffer.data(), buffer.size());
    link.reader.add(ByteView(buffer).first(static_cast<std::size_t>(got)));
    value_of(link.reader.next());
  }
  ~LinkInHand() {
    for (const int fd : {in[0], in[1], out[0], out[1]})
      if (fd >= 0) ::close(fd);
  }
  void say(ByteView bytes) { REQUIRE(::write(in[1], bytes.data(), bytes.size()) > 0); }
  void hang_up() { ::close(std::exchange(in[1], -1)); }

  std::array<int, 2> in{-1, -1}, out{-1, -1};
  sync::Link link;
};

TEST_CASE("a pause ends with word of a change, at its time, or with the link", "[sync]") {
  LinkInHand far;
  const auto run = [&](Pause pause, std::chrono::seconds most) {
    return value_of(sync::run_pause(pause, far.link, {-1, {}, std::chrono::steady_clock::now() + most}, {}));
  };
  const auto now = std::chrono::steady_clock::now();
  CHECK(run({true, now}, 0s) == PauseEnd::time);
  far.say(sync::encode_frame(FrameType::changed, Bytes{0}));
  CHECK(run({true, now}, 0s) == PauseEnd::time);
  far.say(sync::encode_frame(FrameType::changed, Bytes{0}));
  far.say(sync::encode_frame(FrameType::changed, Bytes{1}));
  CHECK(run({true, now}, 60s) == PauseEnd::there);
  far.hang_up();
  CHECK(run({true, now}, 60s) == PauseEnd::closed);
}

TEST_CASE("a pause leaves the greeting of the next exchange to that", "[sync]") {
  LinkInHand far;
  far.say(sync::encode_frame(FrameType::changed, Bytes{2}));
  far.say(sync::encode_frame(FrameType::hello, Bytes{'k', 'i'}));
  Pause pause(false, std::chrono::steady_clock::now());
  CHECK(value_of(sync::run_pause(pause, far.link, {}, {})) == PauseEnd::there);
  const auto greeting = value_of(far.link.reader.next());
  REQUIRE(greeting);
  CHECK(greeting->payload == Bytes{'k', 'i'});
}

TEST_CASE("a change here ends the initiator's pause, and is told by the responder's", "[sync]") {
  LinkInHand far;
  std::array<int, 2> watch{};
  REQUIRE(::pipe(watch.data()) == 0);
  const Bytes event{1};
  REQUIRE(::write(watch[1], event.data(), 1) == 1);
  int looked = 0;
  const auto now = std::chrono::steady_clock::now();
  Pause a(true, now);
  const auto has_changed = [&] { return ++looked == 2; };  // a lock that came and went is none
  CHECK(value_of(sync::run_pause(a, far.link, {watch[0], has_changed, now + 60s}, {})) == PauseEnd::here);
  CHECK(looked == 2);
  Pause b(false, now);
  const auto then_hang_up = [&] {
    far.hang_up();
    return true;
  };
  CHECK(value_of(sync::run_pause(b, far.link, {watch[0], then_hang_up, {}}, {})) == PauseEnd::closed);
  Bytes told(8);
  told.resize(static_cast<std::size_t>(::read(far.out[0], told.data(), told.size())));
  CHECK(told == Bytes{12, 1, 1});
  ::close(watch[0]);
  ::close(watch[1]);
}

TEST_CASE("an end that looks through its store says now and then that it is there", "[sync]") {
  LinkInHand far;
  Pause responder(false, kStart);
  sync::SignsOfLife of_initiator(far.link, true, kStart), of_responder(far.link, false, kStart);
  const auto said = [&] {
    REQUIRE(::fcntl(far.out[0], F_SETFL, O_NONBLOCK) == 0);
    Bytes bytes(100);
    const ssize_t got = ::read(far.out[0], bytes.data(), bytes.size());
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  };
  std::size_t count = 0;
  for (auto time = 0s; time < 600s; time += 1s) {
    of_initiator.show(kStart + time);
    if (const Bytes bytes = said(); !bytes.empty()) {
      ++count;
      require_ok(responder.receive(frame_of(bytes), kStart + time));
    }
    value_of(responder.next(kStart + time));
  }
  CHECK(count == 9);
  of_responder.show(kStart + 9s);
  CHECK(said().empty());
  of_responder.show(kStart + 10s);
  CHECK(said() == Bytes{12, 1, 0});
}

TEST_CASE("what comes of a pause before the greeting is taken in a link that is kept", "[sync]") {
  SyncEndForTest a;
  a.scan();
  const auto taken = [&](bool stays, const Frame& frame) {
    sync::SessionOptions options;
    options.kind = 1;
    options.is_initiator = true;
    options.stays = stays;
    sync::Session session(a.parts(), options, {});
    std::uint64_t count = 0;
    while (count < 2 * sync::kMostSigns && session.receive(frame)) ++count;
    return count;
  };
  for (const Frame& frame : {changed(1), Frame{FrameType::ack, {1}}}) {
    CHECK(taken(false, frame) == 0);
    CHECK(taken(true, frame) == sync::kMostSigns);
  }
}

TEST_CASE("nothing comes behind the end of an exchange, where the next one may begin", "[sync]") {
  SyncEndForTest a, b;
  a.store.put_message("", "one", "a message\n");
  const LinkForTest link = exchange(a, b);
  REQUIRE_FALSE(link.error);
  REQUIRE(link.types_from_responder.size() > 1);
  CHECK(link.types_from_responder.back() == FrameType::done);
}

TEST_CASE("a pause ends where the link takes nothing any more", "[sync]") {
  LinkInHand far;
  REQUIRE(::fcntl(far.out[1], F_SETFL, O_NONBLOCK) == 0);
  const Bytes filler(4096);
  while (::write(far.out[1], filler.data(), filler.size()) > 0) continue;
  Pause pause(false, std::chrono::steady_clock::now());
  pause.set_changed();
  sync::PauseOptions options;
  options.write_within = 300ms;
  CHECK(sync::run_pause(pause, far.link, options, {}).error().code() == ErrorCode::io);
}

TEST_CASE("a link that was kept is given up where it hangs in the middle of a greeting", "[sync]") {
  SyncEndForTest b;
  b.scan();
  LinkInHand far;
  far.say(Bytes{static_cast<std::uint8_t>(FrameType::hello), 80, 'k', 'i'});
  sync::SessionOptions options;
  options.kind = 1;
  sync::Session session(b.parts(), options, {});
  sync::ExchangeOptions exchange;
  exchange.was_kept = true;
  exchange.most_silent_seconds = 0.3;
  sync::ExchangeTotals totals;
  const auto ended = sync::run_exchange(session, far.link, exchange, {}, totals);
  CHECK(ended.error().message().find("nothing is heard") == 0);
}

}  // namespace
}  // namespace kin::testing
