// The engine in memory, which the simulation stands on, keeps the contract of engines.
#include <doctest/doctest.h>

#include "onced/random.hpp"
#include "support/memory_engine.hpp"
#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

class MemorySubject final : public Subject {
public:
  explicit MemorySubject(MemoryMode mode) : mode_(mode), disk_(MemoryDisk::make({.mode = mode})) { open(); }

  [[nodiscard]] engine::Engine &engine() override { return *engines_.back(); }
  [[nodiscard]] std::uint64_t boot() const override { return boot_; }
  void reopen() override {
    engines_.pop_back();
    open();
  }
  void crash() override {
    disk_->crash();
    open();
  }
  [[nodiscard]] bool fail_next_commit(CommitFault fault) override {
    disk_->fail_next(EngineCall::commit, fault_of(fault));
    return true;
  }
  [[nodiscard]] bool damage(engine::Family family, BytesView key) override {
    disk_->damage(family, key);
    return true;
  }
  [[nodiscard]] bool hold_visible_commits() override {
    if (mode_ == MemoryMode::visible) disk_->hold_commits();
    return mode_ == MemoryMode::visible;
  }
  void release_commits() override { disk_->release_commits(); }
  [[nodiscard]] unsigned random_steps() const override { return 100'000; }

private:
  static EngineFault fault_of(CommitFault fault) {
    switch (fault) {
    case CommitFault::retry:
      return EngineFault::retry;
    case CommitFault::unavailable:
      return EngineFault::unavailable;
    case CommitFault::unknown_written:
      return EngineFault::unknown_written;
    case CommitFault::unknown_lost:
      break;
    }
    return EngineFault::unknown_lost;
  }

  void open() {
    engines_.push_back(disk_->open());
    const auto boot = engines_.back()->begin_boot(0, random_);
    REQUIRE(boot.has_value());
    boot_ = *boot;
  }

  MemoryMode mode_;
  std::shared_ptr<MemoryDisk> disk_;
  SeededRandom random_{1};
  std::vector<std::unique_ptr<engine::Engine>> engines_; // the last one is alive
  std::uint64_t boot_ = 0;
};

EngineFactory in_memory(MemoryMode mode) {
  return [mode] { return std::make_unique<MemorySubject>(mode); };
}

TEST_CASE("the engine in memory keeps the contract") {
  run_contract(in_memory(MemoryMode::stable));
}

TEST_CASE("the engine in memory keeps the contract where commits are visible before they are stable") {
  run_contract(in_memory(MemoryMode::visible));
}

TEST_CASE("what is safe from the end of the process alone goes with the machine") {
  for (const CrashOf of : {CrashOf::process, CrashOf::machine}) {
    CAPTURE(static_cast<int>(of));
    const auto disk = MemoryDisk::make();
    {
      const auto engine = disk->open();
      const auto session = engine->session();
      session->begin(engine::Sync::page_cache);
      CHECK(claim(*session, "k", "v") == Seen{});
      session->add(engine::Counter::results, 1);
      commit(*session);
      CHECK_FALSE(engine->is_all_stable());
      disk->crash(of);
      CHECK_FALSE(engine->health());
    }
    const auto engine = disk->open();
    const bool is_there = of == CrashOf::process;
    CHECK(stored(*engine, "k").has_value() == is_there);
    CHECK(sum_of(*engine, engine::Counter::results) == (is_there ? 1 : 0));
  }
}

TEST_CASE("a disk that lies loses what was committed, unless it is confirmed") {
  for (const bool confirms : {false, true}) {
    CAPTURE(confirms);
    const auto disk = MemoryDisk::make({.mode = MemoryMode::lying});
    const auto engine = disk->open();
    store_row(*engine, "k", "v");
    if (confirms) CHECK(engine->session()->confirm());
    disk->crash();
    CHECK(stored(*disk->open(), "k").has_value() == confirms);
  }
}

TEST_CASE("a unit that waits too long for the row of another loses the race") {
  const auto disk = MemoryDisk::make({.lock_patience = std::chrono::milliseconds(5)});
  const auto engine = disk->open();
  store_row(*engine, "k", "v");
  const auto holder = begun(*engine);
  REQUIRE(lock(*holder, "k").state == State::present);
  const auto other = begun(*engine);
  const std::array<BytesView, 1> keys{"k"};
  std::vector<Found> found;
  const auto step = other->lock(engine::Family::operations, keys, engine::Patience::wait, found);
  REQUIRE_FALSE(step.has_value());
  CHECK(step.error().kind == engine::Failure::Kind::retry);
}

TEST_CASE("each call fails once as it is told, and a crash ends all engines") {
  const auto disk = MemoryDisk::make();
  const auto engine = disk->open();
  const auto session = begun(*engine);
  const std::array<BytesView, 1> keys{"k"};
  std::vector<Found> found;
  disk->fail_next(EngineCall::read, EngineFault::unavailable);
  CHECK_FALSE(session->read(engine::Family::operations, keys, found));
  CHECK(session->read(engine::Family::operations, keys, found));
  disk->fail_next(EngineCall::put, EngineFault::retry);
  const auto lost = session->put(engine::Family::operations, "k", "v");
  REQUIRE_FALSE(lost.has_value());
  CHECK(lost.error().kind == engine::Failure::Kind::retry);
  disk->fail_next(EngineCall::lock, EngineFault::crash);
  CHECK_FALSE(session->lock(engine::Family::operations, keys, engine::Patience::none, found));
  CHECK_FALSE(engine->health());
  CHECK_FALSE(session->confirm());
}

} // namespace
} // namespace onced::testing
