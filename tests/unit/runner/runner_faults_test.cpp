// Queued jobs of functions, on a real store, and what goes wrong around them: what a worker that died has left, leases
// that are lost, a store that fails in between, wall clocks that step, and more jobs than there is memory for.
#include "unit/runner/workshop.hpp"

using namespace onced;
using namespace onced::testing;

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
    CHECK(eventually([&] { return call.stop.stop_requested() && calls == 2; }));
    return answer(1);
  });
  type.deadline = 20ms;
  type.visibility_timeout = 60ms;
  type.concurrency = 2;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(eventually([&] { return shop.counters.late == 1; }));
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
  CHECK(eventually([&] { return shop.counters.receives == 1; }));
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
    CHECK(eventually([&] { return go.load(); }));
    return answer(1);
  }));
  for (const FaultAt fault : {FaultAt::log_append, FaultAt::log_sync}) {
    CAPTURE(static_cast<int>(fault));
    calls = 0;
    go = false;
    shop.start();
    shop.accept({slow_job(fault == FaultAt::log_append ? "a" : "b")});
    CHECK(eventually([&] { return calls == 1; }));
    shop.faults->fail_from(fault, 1);
    go = true;
    CHECK(eventually([&] { return !shop.keeper->state().available; }));
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
    CHECK(eventually([&] { return shop.faults->failures() > 0; }));
    shop.faults->clear();
    CHECK(eventually([&] { return attempt != 0; }));
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
  CHECK(eventually([&] { return shop.counts().dead_letters == 1; }));
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
    CHECK(eventually([&] { return call.stop.stop_requested(); }));
    return TryAgain{"the worker stops"};
  }));
  shop.start();
  shop.accept({slow_job("a"), slow_job("b")});
  CHECK(eventually([&] { return calls == 1; }));
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
  const auto checked = check_executors(shop.handlers);
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == ErrorCode::usage);
}

TEST_CASE("a function that hangs takes no thread of another type") {
  std::atomic<bool> go{false};
  QueuedType hanging = type_of("hangs", [&](const QueuedCall &) -> QueuedResult {
    CHECK(eventually([&] { return go.load(); })); // asked to stop or not
    return answer(1);
  });
  hanging.deadline = 5ms;
  hanging.visibility_timeout = 20ms;
  Workshop shop(std::move(hanging));
  REQUIRE(shop.handlers.add_queued(type_of("slow", [](const QueuedCall &) -> QueuedResult { return answer(2); }))
              .has_value());
  shop.start();
  shop.accept({job_bytes({.operation_id = "h", .numbers = {1}, .type = "hangs"})});
  CHECK(eventually([&] { return shop.counters.expired >= 1; }));
  shop.accept({slow_job("a"), slow_job("b")});
  CHECK(eventually([&] { return shop.counts().results == 2; }));
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
