// The schedule under several threads: a job that is announced while its lease ends is not lost. Not here: the rules of
// the leases (leases_test.cpp), and what runs under them (runner_test.cpp).
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "runner/schedule.hpp"
#include "support/store_harness.hpp"

namespace onced::testing {
namespace {

using runner::Schedule;

// Does both as nearly at once as two threads can.
void at_once(const std::function<void()> &one, const std::function<void()> &other) {
  std::atomic<int> ready{0};
  const auto run = [&ready](const std::function<void()> &work) {
    ++ready;
    while (ready < 2)
      std::this_thread::yield();
    work();
  };
  std::thread second([&] { run(other); });
  run(one);
  second.join();
}

TEST_CASE("a job that is announced while its lease ends waits once that has ended") {
  Handlers handlers;
  REQUIRE(handlers.add_queued({.type = "t", .handler = QueuedFunction([](const QueuedCall &) { return Done{}; })})
              .has_value());
  SystemClock clock;
  SeededRandom random{1};
  Schedule schedule(handlers, 1, clock, random, false, 100);
  const auto waiting = [&] { return schedule.state().at(0).counters.waiting; };
  std::size_t lost = 0;
  for (int round = 0; round < 2'000; ++round) {
    schedule.announce("key", "t", clock.wall());
    const auto lease = schedule.take("t");
    REQUIRE(lease.has_value());
    schedule.started(lease->token);
    at_once([&] { schedule.announce("key", "t", clock.wall()); },
            [&] {
              schedule.forget(lease->token);
              schedule.let_go("key");
            });
    if (waiting() == 0) ++lost;
    while (waiting() > 0)
      schedule.forget(schedule.take("t")->token);
  }
  CHECK(lost == 0);
}

} // namespace
} // namespace onced::testing
