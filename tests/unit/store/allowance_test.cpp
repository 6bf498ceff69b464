// How fast dead letters may be written.
#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "store/allowance.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;
using namespace std::chrono_literals;

namespace {

// How often so many bytes are let through at once.
int times_taken(store::Allowance &allowance, std::uint64_t bytes) {
  int times = 0;
  while (times < 1'000'000 && allowance.take(bytes))
    ++times;
  return times;
}

} // namespace

TEST_CASE("an allowance lets a burst through and then as much as time brings") {
  ManualClock clock;
  store::Allowance allowance(1'000, clock);
  CHECK(times_taken(allowance, 100) == 10 * limits::dead_letter_burst.count());
  clock.now += 100ms;
  CHECK(times_taken(allowance, 100) == 1);
  for (int step = 0; step < 1'000; ++step) { // steps too short to bring a byte add up
    clock.now += 100us;
    static_cast<void>(allowance.take(0));
  }
  CHECK(times_taken(allowance, 100) == 1);
  clock.now += 24h;
  CHECK(times_taken(allowance, 100) == 10 * limits::dead_letter_burst.count());
}

TEST_CASE("more bytes than the burst are let through once and waited for after") {
  ManualClock clock;
  store::Allowance allowance(1'000, clock);
  CHECK(allowance.take(20'000));
  clock.now += 3s;
  CHECK_FALSE(allowance.take(1));
  clock.now += 2s;
  CHECK(allowance.take(1));
}

TEST_CASE("dead letters beyond their allowance are busy while jobs are stored and are taken later") {
  ScratchDirectory directory;
  ManualClock clock;
  SeededRandom random(7);
  StoreOptions options;
  options.directory = directory.path();
  options.dead_letter_bytes_a_second = limits::dead_letter_bytes_a_second_min;
  const auto store = Store::open(options, clock, random).value();
  const Handlers handlers = built_in_handlers();
  std::size_t busy = 0;
  for (int number = 0; number < 40; ++number) {
    Delivery bad;
    const Bytes bytes = std::to_string(number) + Bytes(limits::dead_letter_bytes_a_second_min, 'x');
    bad.bytes = bytes;
    bad.defect = "malformed";
    const auto settled = store->commit(std::span(&bad, 1), handlers);
    REQUIRE(settled.has_value());
    if (settled->front().outcome == Outcome::busy) ++busy;
  }
  CHECK(busy >= 20);
  CHECK(busy < 40);
  CHECK(store->count()->dead_letters == 40 - busy);
  clock.now += 1h;
  Delivery bad;
  bad.bytes = "later";
  bad.defect = "malformed";
  CHECK(store->commit(std::span(&bad, 1), handlers)->front().outcome == Outcome::invalid);
}
