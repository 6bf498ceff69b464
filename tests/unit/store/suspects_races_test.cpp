// Many threads whose jobs are suspects and others: a suspect's handler runs while no other does, and all are settled.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "store/suspects/running_slots.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("while the handler of a suspect runs no other inline handler does") {
  constexpr unsigned threads = 4;
  constexpr unsigned jobs_each = 60;
  StoreHarness harness;
  harness.open();
  harness.close();
  {
    const auto slots = store::RunningSlots::open(harness.options.directory);
    REQUIRE(slots.has_value());
    for (unsigned number = 0; number < threads; ++number)
      (*slots)->take().enter(key_of_operation("suspect", "job-" + std::to_string(number) + "-30").bytes, false);
  }
  std::atomic<int> running{0};
  std::atomic<int> met{0};
  std::atomic<int> suspects{0};
  const auto handler = [&](bool is_suspect) {
    return [&, is_suspect](const HandlerCall &) -> HandlerResult {
      const int others = running.fetch_add(1);
      for (int turn = 0; is_suspect && turn < 200; ++turn) {
        if (running.load() != 1) ++met;
        std::this_thread::yield();
      }
      if (is_suspect) ++suspects;
      if (is_suspect && others != 0) ++met;
      std::this_thread::yield();
      running.fetch_sub(1);
      return Done{.result = integer_result(1)};
    };
  };
  REQUIRE(harness.handlers.add_inline("suspect", handler(true)).has_value());
  REQUIRE(harness.handlers.add_inline("other", handler(false)).has_value());
  harness.open();
  CHECK(harness.store->handler_crashes().suspects.size() == threads);

  std::atomic<unsigned> stored{0};
  std::vector<std::thread> running_threads;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running_threads.emplace_back([&, thread] {
      // The suspects come in the middle of the others.
      for (unsigned number = 0; number < jobs_each; ++number) {
        const std::string id = "job-" + std::to_string(thread) + "-" + std::to_string(number);
        const Batch batch(
            {job_bytes({.operation_id = id, .numbers = {1}, .type = number == 30 ? "suspect" : "other"})});
        const auto settled = harness.store->commit(batch.view(), harness.handlers);
        if (settled && settled->at(0).outcome == Outcome::stored) ++stored;
      }
    });
  }
  for (std::thread &thread : running_threads)
    thread.join();
  CHECK(stored == threads * jobs_each);
  CHECK(suspects == static_cast<int>(threads));
  CHECK(met == 0);
  CHECK(harness.store->handler_crashes().suspects.empty());
}
