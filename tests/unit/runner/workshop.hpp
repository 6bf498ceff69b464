#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "onced/fencing_token.hpp"
#include "runner/executor.hpp"
#include "runner/runner_context.hpp"
#include "runner/time_keeper.hpp"
#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "support/queue_harness.hpp"

// Queued jobs on a real store with the threads that hand them to functions.
namespace onced::testing {

using namespace onced::runner;
using namespace std::chrono_literals;

// The true monotonic clock, and a wall clock that is set at will.
class SteppedClock final : public Clock {
public:
  [[nodiscard]] WallTime wall() override { return SystemClock().wall() + std::chrono::hours(hours_off); }
  [[nodiscard]] MonotonicTime monotonic() override { return SystemClock().monotonic(); }

  std::atomic<int> hours_off{0};
};

class CountingLog final : public EventLog {
public:
  void write(const Event &event) noexcept override {
    const std::scoped_lock lock(mutex_);
    names_.emplace_back(event.name);
  }
  [[nodiscard]] auto count(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    return std::count(names_.begin(), names_.end(), name);
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

// A type whose backoff is no wait for a test.
inline QueuedType type_of(std::string name, QueuedFunction function) {
  QueuedType type{.type = std::move(name), .handler = std::move(function)};
  type.backoff = 1ms;
  type.backoff_max = 5ms;
  return type;
}
inline QueuedType external_type(EffectPolicy policy, QueuedFunction function, ReconcileFunction reconcile = {}) {
  QueuedType type = type_of("pay", std::move(function));
  type.external = true;
  type.policy = policy;
  type.reconcile = std::move(reconcile);
  type.owner = "treasury";
  return type;
}

// The executors and the time keeper, on a store of their own, which may be closed and opened again.
class Workshop {
public:
  explicit Workshop(QueuedType type) { REQUIRE(handlers.add_queued(std::move(type)).has_value()); }
  ~Workshop() { stop(); }
  Workshop(const Workshop &) = delete;
  Workshop &operator=(const Workshop &) = delete;

  void start() {
    StoreOptions store_options;
    store_options.directory = directory.path();
    store_options.environment = faulty_environment(faults);
    store_options.observer = &observer;
    store_options.dead_letters_max = dead_letters_max;
    keeper = std::make_unique<store::StoreKeeper>(
        store_options, clock, random, log,
        [this] {
          if (time_keeper) time_keeper->look_again();
        },
        [](const Error &) {});
    REQUIRE(keeper->open().has_value());
    options.directory = directory.path();
    options.boot = boot_count_of(keeper->state().boot);
    context = std::make_unique<RunnerContext>(options, handlers, *keeper, clock, random, log, counters,
                                              [this](const JobEnd &end) {
                                                ++(end.outcome == Outcome::stored ? told_stored : told_failed);
                                                if (on_end) on_end(end);
                                              });
    REQUIRE(context->locks.prepare().has_value());
    time_keeper = std::make_unique<TimeKeeper>(*context);
    observer.schedule = &context->schedule;
    threads.emplace_back([this] { keeper->run(); });
    for (const std::string_view type : executor_types(handlers))
      threads.emplace_back([this, type] { Executor(*context, type).run(); });
    time_keeper_thread = std::thread([this] { time_keeper->run(); });
  }

  void stop() {
    if (!context) return;
    context->schedule.drain();
    keeper->stop();
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
    time_keeper->stop();
    time_keeper_thread.join();
    observer.schedule = nullptr;
    keeper->close();
    time_keeper.reset();
    context.reset();
  }

  void accept(const std::vector<Bytes> &jobs) {
    const Batch batch(jobs);
    auto store = keeper->lease();
    const auto settled = store->commit(batch.view(), handlers);
    REQUIRE(settled.has_value());
    for (const auto &settlement : *settled)
      REQUIRE(settlement.outcome == Outcome::accepted);
  }

  [[nodiscard]] Counts counts() {
    auto store = keeper->lease();
    return store->count().value();
  }
  [[nodiscard]] bool ends_with(std::uint64_t results, std::uint64_t dead_letters) {
    return eventually([&] {
      const Counts now = counts();
      return now.results == results && now.dead_letters == dead_letters && now.pending == 0;
    });
  }
  [[nodiscard]] std::optional<store::QueueRow> row(std::string_view operation_id) {
    auto store = keeper->lease();
    return store->queue().find(key_of(operation_id, "pay")).value();
  }
  [[nodiscard]] bool is_held(std::string_view operation_id) {
    return eventually([&] {
      const auto now = row(operation_id);
      return now && now->state == store::QueueState::held;
    });
  }
  [[nodiscard]] bool is_sound() {
    auto store = keeper->lease();
    return store->verify().value().problems == 0;
  }

  // What a worker leaves that dies in the middle of a call: so many receives are counted. The runner is not there.
  void leave_called(const Bytes &job, std::string_view type, unsigned receives) {
    QueueHarness dead(directory.path());
    REQUIRE(dead.commit_one(job).outcome == Outcome::accepted);
    Batch batch({job});
    for (unsigned at = 0; at < receives; ++at)
      REQUIRE(dead.receive_key(batch.view()[0].key->bytes, dead.next_token(), type).answer ==
              store::Received::Answer::job);
  }

  ScratchDirectory directory;
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  SteppedClock clock;
  SeededRandom random{7};
  CountingLog log;
  QueueCounters counters;
  Handlers handlers = built_in_handlers();
  RunnerOptions options;
  std::uint64_t dead_letters_max = 1000;
  std::function<void(const JobEnd &)> on_end;
  std::atomic<int> told_stored{0};
  std::atomic<int> told_failed{0};
  std::unique_ptr<store::StoreKeeper> keeper;
  std::unique_ptr<RunnerContext> context;
  std::unique_ptr<TimeKeeper> time_keeper;

private:
  struct Observer final : StoreObserver {
    void queued(BytesView key, std::string_view type, WallTime accepted_at) override {
      if (schedule != nullptr) schedule->announce(key, type, accepted_at);
    }
    void relayed() override {}
    Schedule *schedule = nullptr;
  };

  Observer observer;
  std::vector<std::thread> threads;
  std::thread time_keeper_thread;
};

inline Done answer(std::int64_t number) {
  return {.result = integer_result(number)};
}

} // namespace onced::testing
