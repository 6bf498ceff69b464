// Verifies what each reply does to the jobs of the redelivery state machine. Not verified here: when jobs are due
// (redelivery_test.cpp), and sockets.
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

TEST_CASE("every final outcome settles the job and reports it whole") {
  for (const auto &traits : onced::outcome_table) {
    if (!traits.final) continue;
    CAPTURE(traits.name);
    Bench bench;
    bench.redelivery.on_greeting(boot(1), bench.now, issued(2)); // so that job 1 may have expired
    bench.add(1);
    bench.send();
    bench.now += 1s;
    bench.send();
    const auto replied = bench.reply(1, traits.outcome);
    CHECK(replied.effect == Effect::settled);
    REQUIRE(replied.settled.has_value());
    CHECK(replied.settled->sequence == Sequence{1});
    CHECK(replied.settled->outcome == traits.outcome);
    CHECK(replied.settled->result == "r");
    CHECK(replied.settled->detail == "d");
    CHECK(replied.settled->attempts == 2);
    CHECK(replied.settled->durability == onced::Durability::page_cache);

    CHECK(bench.redelivery.counters().unsettled == 0);
    CHECK(bench.redelivery.counters().in_flight == 0);
    CHECK(bench.redelivery.counters().bytes == 0);
    CHECK_FALSE(bench.next_due().has_value());
    bench.now += 24h;
    CHECK(bench.due().empty());
  }
}

TEST_CASE("that a job has expired is believed only where it was issued before the horizon of the worker") {
  Bench bench;
  bench.add(2);
  bench.send();
  CHECK(bench.reply(1, Outcome::expired).effect == Effect::ignored); // the worker has named no horizon
  bench.redelivery.on_greeting(boot(1), bench.now, issued(2));
  CHECK(bench.reply(2, Outcome::expired).effect == Effect::ignored); // issued at the horizon
  CHECK(bench.redelivery.counters().ignored_replies == 2);
  CHECK(bench.redelivery.counters().in_flight == 2);
  CHECK(bench.reply(1, Outcome::expired).effect == Effect::settled); // issued before it
  bench.redelivery.on_greeting(boot(2), bench.now);
  CHECK(bench.reply(2, Outcome::expired).effect == Effect::ignored);
  CHECK(bench.reply(2, Outcome::stored).effect == Effect::settled);
}

TEST_CASE("what the worker has said last of a job is known while it holds") {
  Bench bench;
  bench.add(3);
  bench.send();
  CHECK_FALSE(bench.redelivery.last_said(Sequence{1}).has_value());
  bench.reply(1, Outcome::accepted);
  bench.reply(2, Outcome::busy);
  REQUIRE(bench.redelivery.last_said(Sequence{1}).has_value());
  CHECK(bench.redelivery.last_said(Sequence{1})->outcome == Outcome::accepted);
  CHECK(bench.redelivery.last_said(Sequence{1})->detail == "d");
  CHECK(bench.redelivery.last_said(Sequence{2})->outcome == Outcome::busy);
  CHECK(bench.redelivery.counters().accepted == 1);
  CHECK(bench.redelivery.first_unsettled() == Sequence{1});
  // It is in custody for good; that it was busy ends with the next send.
  bench.redelivery.on_greeting(boot(2), bench.now);
  bench.send();
  CHECK(bench.redelivery.last_said(Sequence{1})->outcome == Outcome::accepted);
  CHECK_FALSE(bench.redelivery.last_said(Sequence{2}).has_value());
  bench.reply(1, Outcome::stored);
  CHECK(bench.redelivery.counters().accepted == 0);
  CHECK_FALSE(bench.redelivery.last_said(Sequence{1}).has_value());
  CHECK(bench.redelivery.first_unsettled() == Sequence{2});
}

TEST_CASE("an accepted job waits outside the window and is asked for every 30 seconds") {
  Bench bench(window_of(1));
  bench.add(2);
  CHECK(bench.send() == Numbers{1});
  for (std::uint32_t attempt = 2; attempt <= 5; ++attempt) {
    const auto replied = bench.reply(1, Outcome::accepted);
    CHECK(replied.effect == Effect::waiting);
    CHECK_FALSE(replied.settled.has_value());
    CHECK(bench.redelivery.counters().in_flight == 0);
    CHECK(bench.redelivery.counters().waiting == 1);
    if (attempt == 2) {
      CHECK(bench.send() == Numbers{2});
      bench.reply(2, Outcome::stored);
    }
    CHECK(bench.next_due() == bench.now + 30s);
    bench.now += 30s;
    REQUIRE(bench.due().size() == 1);
    CHECK(bench.due()[0].attempt == attempt);
    CHECK(bench.send() == Numbers{1});
  }
  CHECK(bench.reply(1, Outcome::duplicate).settled->attempts == 5);
}

TEST_CASE("a busy job waits outside the window and is sent again with backoff") {
  Bench bench(window_of(1));
  bench.add(2);
  CHECK(bench.send() == Numbers{1});
  CHECK(bench.reply(1, Outcome::busy).effect == Effect::waiting);
  CHECK(bench.send() == Numbers{2});
  bench.reply(2, Outcome::stored);
  std::chrono::seconds longest = 1s;
  for (int round = 0; round < 8; ++round) {
    const auto next = bench.next_due();
    REQUIRE(next.has_value());
    CHECK(*next - bench.now >= longest / 2.0);
    CHECK(*next - bench.now <= longest);
    bench.now = *next;
    CHECK(bench.send() == Numbers{1});
    CHECK(bench.reply(1, Outcome::busy).effect == Effect::waiting);
    longest = std::min<std::chrono::seconds>(30s, longest * 2);
  }
}

TEST_CASE("a final outcome settles a job that waits") {
  for (const Outcome not_final : {Outcome::accepted, Outcome::busy}) {
    Bench bench;
    bench.add(1);
    bench.send();
    bench.reply(1, not_final);
    CHECK(bench.reply(1, Outcome::stored).effect == Effect::settled);
    CHECK(bench.redelivery.counters().waiting == 0);
    CHECK_FALSE(bench.next_due().has_value());
  }
}

TEST_CASE("a late final outcome settles a job that is due again") {
  Bench bench;
  bench.add(1);
  bench.send();
  bench.now += 1s;
  CHECK(bench.due().size() == 1);
  CHECK(bench.reply(1, Outcome::stored).settled->attempts == 1);
  CHECK(bench.due().empty());
  CHECK_FALSE(bench.next_due().has_value());
}

TEST_CASE("a late accepted or busy makes a job that is due again wait") {
  for (const Outcome not_final : {Outcome::accepted, Outcome::busy}) {
    Bench bench;
    bench.add(1);
    bench.send();
    bench.redelivery.on_greeting(boot(2), bench.now);
    CHECK(bench.due().size() == 1);
    CHECK(bench.reply(1, not_final).effect == Effect::waiting);
    CHECK(bench.due().empty());
    CHECK(bench.next_due() > bench.now);
    CHECK(bench.redelivery.counters().waiting == 1);
  }
}

TEST_CASE("repeated replies that are not final cannot put a waiting job off") {
  Bench bench;
  bench.add(1);
  bench.send();
  bench.reply(1, Outcome::accepted);
  const auto ask_again = bench.next_due();
  for (int second = 0; second < 29; ++second) {
    bench.now += 1s;
    CHECK(bench.reply(1, Outcome::accepted).effect == Effect::waiting);
    CHECK(bench.next_due() == ask_again);
  }
  CHECK(bench.redelivery.counters().waiting == 1);
}

TEST_CASE("a reply of an unknown sequence or another tag or for a job never sent is ignored") {
  Bench bench(window_of(1));
  bench.add(2);
  bench.send();
  CHECK(bench.reply(3, Outcome::stored).effect == Effect::ignored);
  CHECK(bench.reply(0, Outcome::stored).effect == Effect::ignored);
  CHECK(bench.reply(1, Outcome::stored, tag(2)).effect == Effect::ignored);
  CHECK(bench.reply(1, Outcome::accepted, tag(2)).effect == Effect::ignored);
  CHECK(bench.reply(2, Outcome::stored).effect == Effect::ignored);
  CHECK(bench.redelivery.counters().ignored_replies == 5);
  CHECK(bench.redelivery.counters().unsettled == 2);
  CHECK(bench.redelivery.counters().in_flight == 1);
  bench.reply(1, Outcome::stored);
  CHECK(bench.reply(1, Outcome::stored).effect == Effect::ignored);
  CHECK(bench.send() == Numbers{2});
}
