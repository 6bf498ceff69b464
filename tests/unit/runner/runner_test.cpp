// Queued jobs are handed to functions by the runner, on a real store: what each end of a handler leads to, each policy
// of an unknown effect, what a worker that died has left, leases that are lost, a store that fails in between, wall
// clocks that step, and more jobs than there is memory for. Not here: commands (command_test.cpp,
// contract/handlers_test.cpp), kill -9 (tests/handlers), and the leases by themselves (leases_test.cpp).
#include "runner/runner.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "onced/fencing_token.hpp"
#include "support/faulty_environment.hpp"
#include "support/queue_harness.hpp"

using namespace onced;
using namespace onced::runner;
using namespace onced::testing;
using namespace std::chrono_literals;

namespace {

bool in_good_time(const std::function<bool()> &is_so) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

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
QueuedType type_of(std::string name, QueuedFunction function) {
  QueuedType type{.type = std::move(name), .handler = std::move(function)};
  type.backoff = 1ms;
  type.backoff_max = 5ms;
  return type;
}
QueuedType external_type(EffectPolicy policy, QueuedFunction function, ReconcileFunction reconcile = {}) {
  QueuedType type = type_of("pay", std::move(function));
  type.external = true;
  type.policy = policy;
  type.reconcile = std::move(reconcile);
  type.owner = "treasury";
  return type;
}

// A runner with its threads on a store of its own, which it may be taken from and given back to.
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
          if (runner) runner->look_again();
        },
        [](const Error &) {});
    REQUIRE(keeper->open().has_value());
    options.directory = directory.path();
    options.boot = boot_count_of(keeper->state().boot);
    auto made = Runner::make(options, handlers, *keeper, clock, random, log, counters, [this](const JobEnd &end) {
      ++(end.outcome == Outcome::stored ? told_stored : told_failed);
      if (on_end) on_end(end);
    });
    REQUIRE(made.has_value());
    runner = std::move(*made);
    observer.runner = runner.get();
    threads.emplace_back([this] { keeper->run(); });
    for (unsigned at = 0; at < runner->executors(); ++at)
      threads.emplace_back([this, at] { runner->run_executor(at); });
    time_keeper = std::thread([this] { runner->run_time_keeper(); });
  }

  void stop() {
    if (!runner) return;
    runner->drain();
    keeper->stop();
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
    runner->stop();
    time_keeper.join();
    observer.runner = nullptr;
    keeper->close();
    runner.reset();
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
    return in_good_time([&] {
      const Counts now = counts();
      return now.results == results && now.dead_letters == dead_letters && now.pending == 0;
    });
  }
  [[nodiscard]] std::optional<store::QueueRow> row(std::string_view operation_id) {
    auto store = keeper->lease();
    return store->queue().find(key_of(operation_id, "pay")).value();
  }
  [[nodiscard]] bool is_held(std::string_view operation_id) {
    return in_good_time([&] {
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
  std::unique_ptr<Runner> runner;

private:
  struct Observer final : StoreObserver {
    void queued(BytesView key, std::string_view type, WallTime accepted_at) override {
      if (runner != nullptr) runner->add(key, type, accepted_at);
    }
    void relayed() override {}
    Runner *runner = nullptr;
  };

  Observer observer;
  std::vector<std::thread> threads;
  std::thread time_keeper;
};

Done answer(std::int64_t number) {
  return {.result = integer_result(number)};
}

} // namespace

TEST_CASE("a function is given its job and its result is committed and told") {
  std::mutex mutex;
  std::vector<std::string> seen;
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    const std::scoped_lock lock(mutex);
    seen.emplace_back(call.operation_id);
    CHECK(call.type == "slow");
    CHECK(call.attempt == 1);
    CHECK(call.idempotency_key.size() == 64);
    CHECK(call.fencing_token.size() == 32);
    CHECK_FALSE(call.stop.stop_requested());
    return answer(5);
  }));
  shop.start();
  shop.accept({slow_job("a", 1), slow_job("b", 2)});
  CHECK(shop.ends_with(2, 0));
  CHECK(in_good_time([&] { return shop.told_stored == 2; }));
  CHECK(seen == std::vector<std::string>{"a", "b"});
  CHECK(shop.is_sound());
}

TEST_CASE("each end of a plain handler leads to its own") {
  struct End {
    QueuedResult first;
    int calls;
    bool fails;
  };
  const std::vector<End> ends{{TryAgain{"busy"}, 2, false},
                              {EffectUnknown{"who knows"}, 2, false},
                              {Failed{"no"}, 1, true},
                              {Invalid{"no such field"}, 1, true},
                              {Done{.result = "\xC1"}, 2, false}};
  for (std::size_t at = 0; at < ends.size(); ++at) {
    CAPTURE(at);
    std::atomic<int> calls{0};
    Workshop shop(type_of("slow", [&](const QueuedCall &) -> QueuedResult {
      return ++calls == 1 ? ends[at].first : QueuedResult(answer(1));
    }));
    shop.start();
    shop.accept({slow_job("a")});
    CHECK(shop.ends_with(ends[at].fails ? 0 : 1, ends[at].fails ? 1 : 0));
    CHECK(calls == ends[at].calls);
    CHECK(in_good_time([&] { return shop.told_failed == (ends[at].fails ? 1 : 0); }));
  }
}

TEST_CASE("an exception is tried again and receives that are used up make a dead letter") {
  std::atomic<int> calls{0};
  QueuedType type = type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    CHECK(static_cast<int>(call.attempt) == ++calls);
    throw std::runtime_error("oh");
  });
  type.max_receive_count = 3;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(0, 1));
  CHECK(calls == 3);
  const auto letter = shop.keeper->lease()->dead_letters(1, {}).value().at(0);
  CHECK(letter.receives == 3);
  CHECK(letter.errors.size() == 3);
  CHECK(letter.detail == "the handler threw: oh");
  CHECK_FALSE(letter.effect_unknown);
}

TEST_CASE("an unknown effect is called again where the provider does nothing twice") {
  std::atomic<int> calls{0};
  std::string first_key;
  Workshop shop(external_type(EffectPolicy::retry, [&](const QueuedCall &call) -> QueuedResult {
    if (++calls == 1) {
      first_key = call.idempotency_key;
      return EffectUnknown{"no answer"};
    }
    CHECK(call.idempotency_key == first_key);
    return answer(1);
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 2);
}

TEST_CASE("an unknown effect is asked for before any other call") {
  enum class Says : std::uint8_t { applied, absent, unknown_then_applied };
  for (const Says says : {Says::applied, Says::absent, Says::unknown_then_applied}) {
    CAPTURE(static_cast<int>(says));
    std::atomic<int> calls{0};
    std::atomic<int> asked{0};
    Workshop shop(external_type(
        EffectPolicy::query,
        [&](const QueuedCall &) -> QueuedResult {
          return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
        },
        [&](const QueuedCall &call) -> ReconcileResult {
          ++asked;
          CHECK(call.attempt >= 2);
          if (says == Says::absent) return EffectAbsent{};
          if (says == Says::unknown_then_applied && asked == 1) return EffectUnknown{"away"};
          return answer(7);
        }));
    shop.start();
    shop.accept({pay_job("a")});
    CHECK(shop.ends_with(1, 0));
    CHECK(calls == (says == Says::absent ? 2 : 1));
    CHECK(asked == (says == Says::unknown_then_applied ? 2 : 1));
    CHECK(shop.keeper->lease()->get(Key{key_of("a", "pay")}).value()->result ==
          integer_result(says == Says::absent ? 1 : 7));
    CHECK(shop.counters.reconciled == 1);
    CHECK(shop.counters.receives == static_cast<std::uint64_t>(calls)); // to ask is not to hand over
  }
}

TEST_CASE("an unknown effect waits for its owner and nothing is called meanwhile") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &) -> QueuedResult {
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("applied"), pay_job("absent", 2)});
  CHECK(shop.is_held("applied"));
  CHECK(shop.row("applied")->receives == 1);
  CHECK(shop.row("applied")->owner == "treasury");
  CHECK(shop.row("applied")->errors == std::vector<std::string>{"no answer"});
  const Operator kim{.by = "kim", .why = "asked them"};
  CHECK(shop.keeper->lease()->resolve(Key{key_of("applied", "pay")}, integer_result(9), kim).has_value());
  CHECK(shop.ends_with(2, 0)); // the other was done at once
  CHECK(calls == 2);
  CHECK(shop.counters.held == 1);
}

TEST_CASE("a job that is resolved as absent is called again") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &call) -> QueuedResult {
    CHECK(call.attempt == 1);
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.is_held("a"));
  CHECK(shop.keeper->lease()->resolve(Key{key_of("a", "pay")}, {}, {.by = "kim", .why = "asked"}).has_value());
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 2);
}

TEST_CASE("an external job whose receives are used up is held and never failed") {
  for (const EffectPolicy policy : {EffectPolicy::retry, EffectPolicy::query}) {
    std::atomic<int> calls{0};
    std::atomic<int> asked{0};
    QueuedType type = external_type(
        policy,
        [&](const QueuedCall &) -> QueuedResult {
          ++calls;
          return EffectUnknown{"no answer"};
        },
        [&](const QueuedCall &) -> ReconcileResult {
          ++asked;
          return EffectUnknown{"no answer either"};
        });
    type.max_receive_count = 3;
    Workshop shop(std::move(type));
    shop.start();
    shop.accept({pay_job("a")});
    CHECK(shop.is_held("a"));
    CHECK(shop.row("a")->effect_unknown);
    CHECK(calls == (policy == EffectPolicy::retry ? 3 : 1));
    CHECK(asked == (policy == EffectPolicy::retry ? 0 : 2));
    CHECK(shop.counts().dead_letters == 0);
  }
}

TEST_CASE("a handler that says that nothing was done leaves no unknown effect") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &) -> QueuedResult {
    return ++calls < 3 ? QueuedResult(TryAgain{"not listening"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 3);
  CHECK(shop.counters.held == 0);
}

TEST_CASE("a refusal after an unknown effect makes a dead letter that says so") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::retry, [&](const QueuedCall &) -> QueuedResult {
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(Failed{"closed account"});
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(0, 1));
  CHECK(shop.keeper->lease()->dead_letters(1, {}).value().at(0).effect_unknown);
}

TEST_CASE("a call that a worker died in is settled by its policy at the next start") {
  for (const EffectPolicy policy : {EffectPolicy::hold, EffectPolicy::retry, EffectPolicy::query}) {
    CAPTURE(static_cast<int>(policy));
    std::atomic<int> calls{0};
    Workshop shop(external_type(
        policy,
        [&](const QueuedCall &) -> QueuedResult {
          ++calls;
          return answer(1);
        },
        [](const QueuedCall &) -> ReconcileResult { return answer(7); }));
    shop.leave_called(pay_job("a"), "pay", 1);
    shop.start();
    if (policy == EffectPolicy::hold) {
      CHECK(shop.is_held("a"));
      CHECK(shop.row("a")->receives == 1); // that of the worker that died: here nothing was started for it
      CHECK(shop.row("a")->receives_total == 1);
    } else {
      CHECK(shop.ends_with(1, 0));
    }
    CHECK(shop.counters.receives == static_cast<std::uint64_t>(calls));
    CHECK(calls == (policy == EffectPolicy::retry ? 1 : 0));
  }
}

TEST_CASE(
    "a job that a worker died with is a dead letter when its receives are used up and held where it is external") {
  Workshop plain(type_of("slow", [](const QueuedCall &) -> QueuedResult { return answer(1); }));
  plain.leave_called(slow_job("a"), "slow", 5);
  plain.start();
  CHECK(plain.ends_with(0, 1));

  Workshop external(external_type(EffectPolicy::retry, [](const QueuedCall &) -> QueuedResult { return answer(1); }));
  external.leave_called(pay_job("a"), "pay", 5);
  external.start();
  CHECK(external.is_held("a"));
  CHECK(external.counters.receives == 0);
}

TEST_CASE("a job that a worker died with has the receives that are left") {
  std::atomic<int> attempt{0};
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    attempt = static_cast<int>(call.attempt);
    return answer(1);
  }));
  shop.leave_called(slow_job("a"), "slow", 4);
  shop.start();
  CHECK(shop.ends_with(1, 0));
  CHECK(attempt == 5);
}

TEST_CASE("a function that passes its deadline is asked to stop and what it says after its lease is refused") {
  std::atomic<int> calls{0};
  QueuedType type = type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    if (++calls > 1) return answer(2);
    CHECK(in_good_time([&] { return call.stop.stop_requested() && calls == 2; }));
    return answer(1);
  });
  type.deadline = 20ms;
  type.visibility_timeout = 60ms;
  type.concurrency = 2;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(in_good_time([&] { return shop.counters.late == 1; }));
  CHECK(shop.log.count("handler.late") == 1);
  CHECK(shop.keeper->lease()->get(Key{key_of("a")}).value()->result == integer_result(2));
}

TEST_CASE(
    "a function keeps its lease however often its visibility timeout passes and wall clocks that step change nothing") {
  QueuedType type = type_of("slow", [](const QueuedCall &) -> QueuedResult {
    const auto until = std::chrono::steady_clock::now() + 400ms;
    while (std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    return answer(1);
  });
  type.visibility_timeout = 100ms;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(in_good_time([&] { return shop.counters.receives == 1; }));
  for (const int hours : {1, -1, 24, 0})
    shop.clock.hours_off = hours;
  CHECK(shop.ends_with(1, 0));
  CHECK(shop.counters.receives == 1);
  CHECK(shop.counters.expired == 0);
}

TEST_CASE("a store that fails while a result is written gets it once it is open again and nothing runs again") {
  std::atomic<int> calls{0};
  std::atomic<bool> go{false};
  Workshop shop(type_of("slow", [&](const QueuedCall &) -> QueuedResult {
    ++calls;
    CHECK(in_good_time([&] { return go.load(); }));
    return answer(1);
  }));
  for (const FaultAt fault : {FaultAt::log_append, FaultAt::log_sync}) {
    CAPTURE(static_cast<int>(fault));
    calls = 0;
    go = false;
    shop.start();
    shop.accept({slow_job(fault == FaultAt::log_append ? "a" : "b")});
    CHECK(in_good_time([&] { return calls == 1; }));
    shop.faults->fail_from(fault, 1);
    go = true;
    CHECK(in_good_time([&] { return !shop.keeper->state().available; }));
    shop.faults->clear();
    CHECK(shop.ends_with(fault == FaultAt::log_append ? 1 : 2, 0));
    CHECK(calls == 1);
    shop.stop();
  }
}

TEST_CASE("a store that fails before the hand-over uses up no receive") {
  std::atomic<int> attempt{0};
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    attempt = static_cast<int>(call.attempt);
    return answer(1);
  }));
  shop.leave_called(slow_job("a"), "slow", 0);
  shop.start();
  CHECK(shop.ends_with(1, 0));
  shop.stop();
  for (const FaultAt fault : {FaultAt::log_append, FaultAt::log_sync}) {
    const std::string id = fault == FaultAt::log_append ? "b" : "c";
    CAPTURE(id);
    shop.leave_called(slow_job(id), "slow", 0);
    attempt = 0;
    // The opening of the store writes once, and the receive is the next.
    shop.faults->fail_from(fault, 2);
    shop.start();
    CHECK(in_good_time([&] { return shop.faults->failures() > 0; }));
    shop.faults->clear();
    CHECK(in_good_time([&] { return attempt != 0; }));
    CHECK(attempt == 1);
    CHECK(shop.ends_with(fault == FaultAt::log_append ? 2 : 3, 0));
    shop.stop();
  }
}

TEST_CASE("a job that has failed waits while the dead letters are at their cap") {
  Workshop shop(type_of("slow", [](const QueuedCall &) -> QueuedResult { return Failed{"no"}; }));
  shop.dead_letters_max = 1;
  shop.start();
  shop.accept({slow_job("a"), slow_job("b")});
  CHECK(in_good_time([&] { return shop.counts().dead_letters == 1; }));
  CHECK(shop.counts().pending == 1);
  const auto letter = shop.keeper->lease()->dead_letters(1, {}).value().at(0);
  CHECK(shop.keeper->lease()->purge(letter.id, {.by = "kim", .why = "room"}).has_value());
  CHECK(shop.ends_with(0, 1));
  CHECK(shop.counters.receives == 2);
}

TEST_CASE("a worker that stops asks its functions to stop and hands nothing more over") {
  std::atomic<int> calls{0};
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    ++calls;
    CHECK(in_good_time([&] { return call.stop.stop_requested(); }));
    return TryAgain{"the worker stops"};
  }));
  shop.start();
  shop.accept({slow_job("a"), slow_job("b")});
  CHECK(in_good_time([&] { return calls == 1; }));
  shop.stop();
  CHECK(calls == 1);
}

TEST_CASE("jobs that have no room in memory come to their turn from the store") {
  std::mutex mutex;
  std::vector<std::string> seen;
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    const std::scoped_lock lock(mutex);
    seen.emplace_back(call.operation_id);
    return answer(1);
  }));
  shop.options.jobs_in_memory = 4;
  constexpr int jobs = 100;
  std::vector<Bytes> batch;
  for (int at = 0; at < jobs; ++at)
    batch.push_back(slow_job("job " + std::to_string(at)));
  shop.start();
  shop.accept(batch);
  CHECK(shop.ends_with(jobs, 0));
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.size() == jobs);
}

TEST_CASE("a redriven job is handed over again with as many receives") {
  std::atomic<int> calls{0};
  QueuedType type = type_of("slow", [&](const QueuedCall &) -> QueuedResult {
    return ++calls <= 2 ? QueuedResult(TryAgain{"no"}) : QueuedResult(answer(1));
  });
  type.max_receive_count = 2;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(0, 1));
  const auto letter = shop.keeper->lease()->dead_letters(1, {}).value().at(0);
  CHECK(shop.keeper->lease()->redrive(letter.id, shop.handlers, {.by = "kim", .why = "again"})->settlement.outcome ==
        Outcome::accepted);
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 3);
}

TEST_CASE("types that want more threads than there may be are refused") {
  Workshop shop(type_of("slow", [](const QueuedCall &) -> QueuedResult { return answer(1); }));
  for (int at = 0; at < 4; ++at) {
    QueuedType type = type_of("t" + std::to_string(at), [](const QueuedCall &) -> QueuedResult { return answer(1); });
    type.concurrency = limits::handler_concurrency_max;
    REQUIRE(shop.handlers.add_queued(std::move(type)).has_value());
  }
  store::StoreKeeper keeper(
      {}, shop.clock, shop.random, shop.log, [] {}, [](const Error &) {});
  const auto made = Runner::make({.directory = shop.directory.path()}, shop.handlers, keeper, shop.clock, shop.random,
                                 shop.log, shop.counters, [](const JobEnd &) {});
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ErrorCode::usage);
}

TEST_CASE("a function that hangs takes no thread of another type") {
  std::atomic<bool> go{false};
  QueuedType hanging = type_of("hangs", [&](const QueuedCall &) -> QueuedResult {
    CHECK(in_good_time([&] { return go.load(); })); // asked to stop or not
    return answer(1);
  });
  hanging.deadline = 5ms;
  hanging.visibility_timeout = 20ms;
  Workshop shop(std::move(hanging));
  REQUIRE(shop.handlers.add_queued(type_of("slow", [](const QueuedCall &) -> QueuedResult { return answer(2); }))
              .has_value());
  shop.start();
  shop.accept({job_bytes({.operation_id = "h", .numbers = {1}, .type = "hangs"})});
  CHECK(in_good_time([&] { return shop.counters.expired >= 1; }));
  shop.accept({slow_job("a"), slow_job("b")});
  CHECK(in_good_time([&] { return shop.counts().results == 2; }));
  go = true;
  CHECK(shop.ends_with(3, 0));
}

TEST_CASE("a job that is redriven while its failed lease still ends is handed over again") {
  std::atomic<int> calls{0};
  Workshop *worker = nullptr;
  Workshop shop(type_of("slow", [&](const QueuedCall &) -> QueuedResult {
    return ++calls == 1 ? QueuedResult(Failed{"no"}) : QueuedResult(answer(1));
  }));
  worker = &shop;
  // Told of the end, which is on stable storage, before the executor has let go of the job.
  shop.on_end = [&](const JobEnd &end) {
    if (end.outcome != Outcome::failed) return;
    const auto letter = worker->keeper->lease()->dead_letters(1, {}).value().at(0);
    CHECK(worker->keeper->lease()->redrive(letter.id, worker->handlers, {.by = "kim", .why = "again"}).has_value());
  };
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 2);
}
