// Verifies when the redelivery state machine has which jobs due. Not verified here: replies
// (redelivery_replies_test.cpp), long mixed histories (tests/simulation), and sockets.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "unit/sender/redelivery_bench.hpp"

namespace {

using namespace std::chrono_literals;
using namespace onced::testing::redelivery;

} // namespace

TEST_CASE("nothing is due before the first greeting") {
  Bench bench({}, false);
  bench.add(3);
  CHECK(bench.due().empty());
  CHECK_FALSE(bench.next_due().has_value());
  bench.now += 24h;
  CHECK(bench.due().empty());
  bench.redelivery.on_greeting(boot(1), bench.now);
  CHECK(bench.next_due() == bench.now);
  CHECK(bench.due_numbers() == Numbers{1, 2, 3});
}

TEST_CASE("sequences count from one and a sequence used up is not given again") {
  Bench bench;
  bench.add(2);
  CHECK(bench.redelivery.take_sequence() == Sequence{3});
  CHECK(bench.redelivery.add("job", tag(4), issued(4)) == Sequence{4});
  CHECK(bench.due_numbers() == Numbers{1, 2, 4});
}

TEST_CASE("a due job shows what it was added with and the attempt that it will be") {
  Bench bench;
  bench.redelivery.add("the bytes", tag(77), issued(5));
  const auto jobs = bench.due();
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].job == "the bytes");
  CHECK(jobs[0].tag == tag(77));
  CHECK(jobs[0].issued_at == issued(5));
  CHECK(jobs[0].attempt == 1);
}

TEST_CASE("a job that was not handed over stays due and its attempt is not counted") {
  Bench bench;
  bench.add(2);
  const auto first = bench.due();
  bench.redelivery.sent({first.data(), 1}, bench.now);
  CHECK(bench.due_numbers() == Numbers{2});
  CHECK(bench.due()[0].attempt == 1);
  CHECK(bench.next_due() == bench.now);
  CHECK(bench.redelivery.counters().in_flight == 1);
}

TEST_CASE("the window bounds the jobs in flight and a reply makes room") {
  Bench bench(window_of(2));
  bench.add(4);
  CHECK(bench.send() == Numbers{1, 2});
  CHECK(bench.due().empty());
  CHECK(bench.next_due() > bench.now);
  CHECK(bench.reply(1, Outcome::stored).effect == Effect::settled);
  CHECK(bench.next_due() == bench.now);
  CHECK(bench.send() == Numbers{3});
  CHECK(bench.redelivery.counters().in_flight == 2);
}

TEST_CASE("the window bounds the bytes in flight and a large job is not passed by") {
  Bench bench(window_of(10, 100));
  bench.add(1, 60);
  bench.add(1, 41);
  bench.add(1, 1);
  CHECK(bench.send() == Numbers{1});
  CHECK(bench.redelivery.counters().in_flight_bytes == 60);
  CHECK(bench.next_due() > bench.now);
  bench.reply(1, Outcome::stored);
  CHECK(bench.send() == Numbers{2, 3});
  CHECK(bench.redelivery.counters().in_flight_bytes == 42);
}

TEST_CASE("the caller bounds the jobs and bytes of one send but always gets one job") {
  Bench bench;
  bench.add(5, 10);
  CHECK(bench.due(3).size() == 3);
  CHECK(bench.due(0).empty());
  CHECK(bench.due(5, 20).size() == 2);
  CHECK(bench.due(5, 29).size() == 2);
  CHECK(bench.due(5, 1).size() == 1);
}

TEST_CASE("room is bounded by jobs and bytes and returns when a job settles") {
  RedeliveryOptions options;
  options.jobs_max = 2;
  options.bytes_max = 100;
  options.window_bytes_max = 90;
  Bench bench(options);
  CHECK(bench.redelivery.has_room(90));
  CHECK_FALSE(bench.redelivery.has_room(91));
  bench.add(1, 60);
  CHECK(bench.redelivery.has_room(40));
  CHECK_FALSE(bench.redelivery.has_room(41));
  bench.add(1, 10);
  CHECK_FALSE(bench.redelivery.has_room(0));
  bench.send();
  bench.reply(1, Outcome::stored);
  CHECK(bench.redelivery.has_room(90));
  CHECK(bench.redelivery.counters().bytes == 10);
}

TEST_CASE("a job whose acknowledgement is late is sent again with doubling waits up to the maximum") {
  Bench bench;
  bench.add(1);
  std::chrono::seconds longest = 1s;
  for (std::uint32_t attempt = 1; attempt <= 10; ++attempt) {
    CAPTURE(attempt);
    REQUIRE(bench.due().size() == 1);
    CHECK(bench.due()[0].attempt == attempt);
    bench.send();
    const auto next = bench.next_due();
    REQUIRE(next.has_value());
    CHECK(*next - bench.now >= longest / 2.0);
    CHECK(*next - bench.now <= longest);
    bench.now = *next - 1ns;
    CHECK(bench.due().empty());
    bench.now = *next;
    longest = std::min<std::chrono::seconds>(30s, longest * 2);
  }
  CHECK(bench.redelivery.counters().resends == 9);
}

TEST_CASE("jobs that were sent together do not time out together") {
  Bench bench;
  bench.add(1000);
  bench.send();
  bench.now += 750ms;
  const std::size_t timed_out = bench.due().size();
  CHECK(timed_out > 400);
  CHECK(timed_out < 600);
}

TEST_CASE("a job that times out leaves the window and goes before newer jobs") {
  Bench bench(window_of(2));
  bench.add(4);
  bench.send();
  bench.now += 1s;
  CHECK(bench.due_numbers() == Numbers{1, 2});
  CHECK(bench.redelivery.counters().in_flight == 0);
  CHECK(bench.send() == Numbers{1, 2});
  CHECK(bench.redelivery.counters().in_flight == 2);
}

TEST_CASE("a new boot makes every job in flight and every waiting job due at once") {
  Bench bench(window_of(4));
  bench.add(5);
  CHECK(bench.send() == Numbers{1, 2, 3, 4});
  bench.reply(1, Outcome::accepted);
  bench.reply(2, Outcome::busy);
  bench.reply(4, Outcome::stored);
  CHECK(bench.send() == Numbers{5});

  bench.redelivery.on_greeting(boot(2), bench.now);
  CHECK(bench.next_due() == bench.now);
  CHECK(bench.redelivery.counters().in_flight == 0);
  CHECK(bench.redelivery.counters().waiting == 0);
  const auto jobs = bench.due();
  CHECK(bench.due_numbers() == Numbers{1, 2, 3, 5});
  for (const auto &job : jobs) {
    CHECK(job.attempt == 2);
    CHECK(job.tag == tag(onced::number_of(job.sequence)));
    CHECK(job.issued_at == issued(onced::number_of(job.sequence)));
  }
}

TEST_CASE("a new boot still sends through the window") {
  Bench bench(window_of(2));
  bench.add(6);
  bench.send();
  bench.reply(1, Outcome::accepted);
  bench.reply(2, Outcome::accepted);
  CHECK(bench.send() == Numbers{3, 4});
  bench.redelivery.on_greeting(boot(2), bench.now);
  CHECK(bench.send() == Numbers{1, 2});
  CHECK(bench.redelivery.counters().in_flight == 2);
}

TEST_CASE("a new boot begins the backoff anew") {
  Bench bench;
  bench.add(1);
  for (int attempt = 0; attempt < 8; ++attempt) {
    bench.send();
    bench.now += 30s;
  }
  bench.send();
  bench.redelivery.on_greeting(boot(2), bench.now);
  CHECK(bench.due()[0].attempt == 10);
  bench.send();
  CHECK(*bench.next_due() - bench.now <= 1s);
}

TEST_CASE("a greeting with the same boot changes nothing") {
  Bench bench;
  bench.add(3);
  bench.send();
  bench.reply(2, Outcome::accepted);
  const auto before = bench.next_due();
  bench.redelivery.on_greeting(boot(1), bench.now);
  CHECK(bench.due().empty());
  CHECK(bench.next_due() == before);
  CHECK(bench.redelivery.counters().in_flight == 2);
  CHECK(bench.redelivery.counters().waiting == 1);
}

TEST_CASE("a full window leaves only timers to wait for") {
  Bench bench(window_of(1));
  bench.add(3);
  bench.send();
  const auto next = bench.next_due();
  REQUIRE(next.has_value());
  CHECK(*next >= bench.now + 500ms);
  CHECK(*next <= bench.now + 1s);
  bench.now = *next;
  CHECK(bench.next_due() == bench.now);
  CHECK(bench.send() == Numbers{1});
}

TEST_CASE("no send and no reply scans all the jobs that wait behind it") {
  // One job at a time: a scan in any call would make it 45 thousand million steps, beyond the time limit of the test.
  constexpr std::size_t jobs = 300'000;
  RedeliveryOptions options = window_of(1);
  options.jobs_max = jobs;
  Bench bench(options);
  for (std::size_t job = 0; job < jobs; ++job)
    bench.redelivery.add("j", tag(job + 1), issued(job));

  std::size_t settled = 0;
  bool always_timed = true;
  for (std::size_t job = 0; job < jobs; ++job) {
    bench.now += 1us;
    const auto one = bench.due(10);
    bench.redelivery.sent(one, bench.now);
    always_timed = always_timed && bench.next_due().has_value();
    settled += bench.reply(job + 1, Outcome::stored).effect == Effect::settled ? 1U : 0U;
  }
  CHECK(settled == jobs);
  CHECK(always_timed);
  CHECK(bench.redelivery.counters().unsettled == 0);
}
