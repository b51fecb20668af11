#include "tests/stress/world.h"

#include <utility>

namespace kin::testing {
namespace {

// One call in so many; a step of a client is some thirty calls.
constexpr std::uint64_t kCallsPerCrash = 5'000;
constexpr std::uint64_t kCallsPerFullDisk = 5'000;
constexpr std::uint64_t kCallsPerClockJump = 300;
constexpr std::uint64_t kMostSecondsOfACall = 200;  // on average, a command takes an hour

class WorldDraft;

}  // namespace

class WorldBackend : public store::Backend {
 public:
  WorldBackend(World& world, Life& life) : world_(world), life_(life), inner_(world.disk().open()) {}

  std::string location() const override { return inner_->location(); }
  Result<void> put(const FileName& name, ByteView bytes) override {
    return call([&] { return inner_->put(name, bytes); });
  }
  Result<std::unique_ptr<store::Draft>> begin() override;
  Result<void> sync() override {
    return call([&] { return inner_->sync(); });
  }
  Result<Bytes> get(const FileName& name) override {
    return call([&] { return inner_->get(name); });
  }
  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override {
    return call([&] { return inner_->get_range(name, offset, size); });
  }
  Result<std::vector<FileInfo>> list(FileKind kind) override {
    return call([&] { return inner_->list(kind); });
  }
  Result<void> remove(const FileName& name) override {
    return call([&] { return inner_->remove(name); });
  }

  template <class Call>
  auto call(const Call& inner) -> decltype(inner()) {
    KIN_TRY(world_.before_call(life_));
    auto done = inner();
    world_.after_call();
    return done;
  }

 private:
  World& world_;
  Life& life_;
  const std::unique_ptr<store::Backend> inner_;
};

namespace {

class WorldDraft : public store::Draft {
 public:
  WorldDraft(WorldBackend& backend, std::unique_ptr<store::Draft> inner)
      : backend_(backend), inner_(std::move(inner)) {}

  Result<void> append(ByteView bytes) override {
    return backend_.call([&] { return inner_->append(bytes); });
  }
  Result<Bytes> get_range(std::uint64_t offset, std::size_t size) override {
    return backend_.call([&] { return inner_->get_range(offset, size); });
  }
  Result<void> put(const FileName& name) override {
    return backend_.call([&] { return inner_->put(name); });
  }

 private:
  WorldBackend& backend_;
  const std::unique_ptr<store::Draft> inner_;
};

}  // namespace

Result<std::unique_ptr<store::Draft>> WorldBackend::begin() {
  KIN_TRY_ASSIGN(auto draft, call([&] { return inner_->begin(); }));
  return std::unique_ptr<store::Draft>(std::make_unique<WorldDraft>(*this, std::move(draft)));
}

std::unique_ptr<store::Backend> World::open(Life& life) {
  return std::make_unique<WorldBackend>(*this, life);
}

Result<void> World::before_call(Life& life) {
  turns_.pass(life.client);
  const std::uint64_t seconds = random_.below(kMostSecondsOfACall);
  right_seconds_ += static_cast<std::int64_t>(seconds);
  life.clock.advance(seconds);
  if (random_.below(kCallsPerClockJump) == 0) set_clock(life.clock);
  if (life.calls_left && (*life.calls_left)-- == 0) life.dead = true;
  if (life.dead) return Error(ErrorCode::io, "the client was killed");
  if (random_.below(kCallsPerCrash) == 0) disk_.crash_after(1 + random_.below(5));
  if (random_.below(kCallsPerFullDisk) == 0) {
    disk_.set_quota(disk_.used_bytes() + random_.below(6'000));
    calls_until_room_ = 1 + random_.below(200);
    ++troubles_;
  } else if (calls_until_room_ > 0 && --calls_until_room_ == 0) {
    disk_.lift_quota();
    ++troubles_;  // whoever began while it was full
  }
  return {};
}

void World::after_call() {
  if (!disk_.crashed()) return;
  disk_.restart();  // those from before it stay dead
  ++troubles_;
}

void World::set_clock(ClientClock& clock) {
  clock.jump(random_, right_seconds_);
  ++clock_jumps_;
}

void World::calm_down() {
  disk_.restart();
  disk_.lift_quota();
  calls_until_room_ = 0;
}

}  // namespace kin::testing
