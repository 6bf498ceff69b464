// Verifies each rule of the redelivery state machine by itself. Not verified here: long mixed histories
// (tests/simulation), and sockets.
#include "sender/redelivery.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using onced::BootId;
using onced::MonotonicTime;
using onced::Outcome;
using onced::Redelivery;
using onced::RedeliveryOptions;
using onced::Sequence;
using onced::Tag;
using Effect = Redelivery::ReplyEffect;
using Numbers = std::vector<std::uint64_t>;

constexpr std::size_t unbounded = 1'000'000;
const MonotonicTime start{1000h};

BootId boot(std::uint8_t number) {
  BootId id;
  id.bytes[7] = number;
  return id;
}

Tag tag(std::uint64_t number) {
  Tag id;
  for (std::size_t byte = 0; byte < Tag::size; ++byte)
    id.bytes[byte] = static_cast<std::uint8_t>(number >> (8 * byte));
  return id;
}

onced::WallTime issued(std::uint64_t number) {
  return onced::WallTime(std::chrono::microseconds(1'000'000 + number));
}

// A sender's jobs, and a hand on its clock. Job n has tag n.
struct Bench {
  explicit Bench(const RedeliveryOptions &options = {}, bool greeted = true) : redelivery(options, random) {
    if (greeted) redelivery.on_greeting(boot(1), now);
  }

  void add(std::size_t jobs, std::size_t bytes_each = 10) {
    for (std::size_t job = 0; job < jobs; ++job) {
      const std::uint64_t number = ++added;
      const Sequence sequence = redelivery.add(std::string(bytes_each, 'j'), tag(number), issued(number));
      REQUIRE(onced::number_of(sequence) == number);
    }
  }

  std::vector<Redelivery::DueJob> due(std::size_t jobs_max = unbounded, std::size_t bytes_max = unbounded) {
    return redelivery.due(now, jobs_max, bytes_max);
  }

  Numbers due_numbers() {
    Numbers numbers;
    for (const auto &job : due())
      numbers.push_back(onced::number_of(job.sequence));
    return numbers;
  }

  // Sends all that is due and returns their sequences.
  Numbers send() {
    Numbers numbers = due_numbers();
    redelivery.sent(due(), now);
    return numbers;
  }

  Redelivery::ReplyResult reply(std::uint64_t number, Outcome outcome) { return reply(number, outcome, tag(number)); }
  Redelivery::ReplyResult reply(std::uint64_t number, Outcome outcome, const Tag &echoed) {
    return redelivery.on_reply({Sequence{number}, echoed, outcome, "r", "d", onced::Durability::page_cache}, now);
  }

  std::optional<MonotonicTime> next_due() { return redelivery.next_due(now); }

  onced::SeededRandom random{1};
  MonotonicTime now = start;
  Redelivery redelivery;
  std::uint64_t added = 0;
};

RedeliveryOptions window_of(std::size_t jobs, std::size_t bytes = unbounded) {
  RedeliveryOptions options;
  options.window_jobs_max = jobs;
  options.window_bytes_max = bytes;
  return options;
}

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
