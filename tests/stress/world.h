// World: a disk that several clients share, and what befalls them: one is killed, all crash and lose what was
// not synced, the disk is full for a while, a clock jumps. What happens, and at which call, follows from the
// seed.
#pragma once

#include "tests/stress/client_clock.h"
#include "tests/stress/turns.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/random_bytes.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kin::testing {

// A client from its start to its end: one command.
struct Life {
  std::size_t client = 0;
  std::optional<std::uint64_t> calls_left;  // then it is killed
  bool dead = false;
  std::uint64_t troubles_before = 0;  // World::troubles() at its start
  ClientClock clock;                  // of the machine: the next command finds it as this one left it
};

class World {
 public:
  World(std::uint64_t seed, std::size_t clients) : turns_(seed + 1, clients), random_(seed + 2) {}

  // A backend whose every call is a turn. `life` must outlive it.
  std::unique_ptr<store::Backend> open(Life& life);
  // It failed, or did what nobody knows, for a reason that is no fault of kin's.
  bool is_excused(const Life& life) const {
    return life.dead || life.troubles_before != troubles_ || calls_until_room_ > 0;
  }

  // A client's clock is set; perhaps right.
  void set_clock(ClientClock& clock);
  std::uint64_t clock_jumps() const { return clock_jumps_; }

  // Nothing befalls anybody any more.
  void calm_down();

  FaultyDisk& disk() { return disk_; }
  Turns& turns() { return turns_; }
  std::uint64_t troubles() const {
    return troubles_;
  }  // of all clients: crashes, and the times of a full disk

 private:
  friend class WorldBackend;
  Result<void> before_call(Life& life);
  void after_call();

  FaultyDisk disk_;
  Turns turns_;
  // Only who has the turn touches these.
  Random random_;
  std::uint64_t troubles_ = 0, clock_jumps_ = 0;
  std::int64_t right_seconds_ = 1'700'000'000;
  std::uint64_t calls_until_room_ = 0;  // 0: there is room
};

}  // namespace kin::testing
