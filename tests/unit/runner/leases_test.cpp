// Verifies each rule of the leases' state machine by itself. Not verified here: long mixed histories
// (leases_model_test.cpp), and that the caller writes what it must before it goes on.
#include "runner/leases.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"

namespace {

using namespace std::chrono_literals;
using onced::MonotonicTime;
using onced::text_of;
using onced::runner::FencingToken;
using onced::runner::LeaseOptions;
using onced::runner::Leases;
using Added = Leases::Added;
using Obstacle = Leases::Obstacle;
using Settlement = Leases::Settlement;
using Verdict = Leases::Verdict;
using Keys = std::vector<std::string>;

const MonotonicTime start{1000h};
constexpr std::uint64_t boot = 7;

// One type "t" with one lease at once, all of whose figures differ.
LeaseOptions one_type(std::string name = "t") {
  return {.type = std::move(name),
          .concurrency = 1,
          .visibility_timeout = 30s,
          .max_receive_count = 3,
          .backoff = 1s,
          .backoff_max = 3s,
          .jobs_max = 100};
}

LeaseOptions with_concurrency(std::size_t concurrency) {
  LeaseOptions options = one_type();
  options.concurrency = concurrency;
  return options;
}

LeaseOptions with_places(std::size_t jobs_max) {
  LeaseOptions options = one_type();
  options.jobs_max = jobs_max;
  return options;
}

// The leases, and a hand on their clock.
struct Bench {
  explicit Bench(const std::vector<LeaseOptions> &types = {one_type()}) : leases(types, boot, random) {}

  Added add(std::string_view key, std::string_view type = "t", std::uint32_t receives = 0) {
    return leases.add(key, type, receives, now, now);
  }

  // Takes and starts one job, which must be due.
  Leases::HandOver run() {
    auto taken = take();
    REQUIRE(leases.started(taken.token, now));
    return taken;
  }
  Leases::HandOver take() {
    auto taken = leases.take(now);
    REQUIRE(taken.has_value());
    return *taken;
  }
  bool nothing_to_take() { return !leases.take(now).has_value(); }

  // The keys of all that can be run at once, in their order.
  Keys run_all() {
    Keys keys;
    for (auto taken = leases.take(now); taken; taken = leases.take(now)) {
      REQUIRE(leases.started(taken->token, now));
      keys.push_back(taken->key);
    }
    return keys;
  }

  Settlement settle(const FencingToken &token, Verdict verdict) { return leases.settle(token, verdict, now); }

  // Lets time pass until something is due, and returns how long that took.
  MonotonicTime::duration wait() {
    const auto next = leases.next_due(now);
    REQUIRE(next.has_value());
    const auto waited = *next - now;
    now = *next;
    return waited;
  }

  onced::SeededRandom random{1};
  MonotonicTime now = start;
  Leases leases;
};

Leases::Counters counted(std::size_t waiting, std::size_t starting, std::size_t running, bool more_in_store = false) {
  return {waiting, starting, running, more_in_store};
}

} // namespace

TEST_CASE("a job added is taken at once with its key and type and its first receive") {
  Bench bench;
  CHECK(bench.add("k") == Added::waiting);
  CHECK(bench.leases.next_due(bench.now) == bench.now);
  const auto taken = bench.take();
  CHECK(taken.key == "k");
  CHECK(taken.type == "t");
  CHECK(taken.receives == 1);
  CHECK(taken.token == FencingToken{boot, 1});
}

TEST_CASE("jobs are taken in the order in which they came") {
  Bench bench({with_concurrency(3)});
  for (const char *key : {"b", "c", "a"})
    bench.add(key);
  CHECK(bench.run_all() == Keys{"b", "c", "a"});
}

TEST_CASE("a job found with receives used up before goes on counting them") {
  Bench bench;
  bench.add("k", "t", 1);
  CHECK(bench.take().receives == 2);
}

TEST_CASE("a job is known while it waits or starts or runs and new once it has ended") {
  Bench bench;
  bench.add("k");
  CHECK(bench.add("k") == Added::known);
  const auto taken = bench.take();
  CHECK(bench.add("k") == Added::known);
  bench.leases.started(taken.token, bench.now);
  CHECK(bench.add("k") == Added::known);
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
  bench.settle(taken.token, Verdict::try_again);
  CHECK(bench.add("k") == Added::known);
  bench.wait();
  bench.settle(bench.run().token, Verdict::done);
  CHECK(bench.add("k") == Added::waiting);
  CHECK(bench.take().receives == 1);
}

TEST_CASE("a job of a type without a handler is not added") {
  Bench bench;
  CHECK(bench.add("k", "u") == Added::unhandled);
  CHECK(bench.nothing_to_take());
  CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
  CHECK(bench.leases.counters("u") == counted(0, 0, 0));
}

TEST_CASE("without types there is nothing to take") {
  Bench bench(std::vector<LeaseOptions>{});
  CHECK(bench.nothing_to_take());
  CHECK(bench.leases.begin_refill().empty());
}

TEST_CASE("no more leases of a type than its concurrency") {
  Bench bench({with_concurrency(2)});
  for (const char *key : {"a", "b", "c"})
    bench.add(key);
  const auto first = bench.take();
  bench.run();
  CHECK(bench.nothing_to_take());
  CHECK(bench.leases.counters("t") == counted(1, 1, 1));
  CHECK(bench.leases.next_due(bench.now) == bench.now + 30s);
  bench.settle(first.token, Verdict::done);
  CHECK(bench.take().key == "c");
}

TEST_CASE("types are served in turn whatever the numbers of their jobs") {
  LeaseOptions many = one_type("a");
  many.concurrency = 10;
  LeaseOptions few = one_type("b");
  few.concurrency = 10;
  Bench bench({many, few});
  for (const char *key : {"a1", "a2", "a3", "a4"})
    bench.add(key, "a");
  for (const char *key : {"b1", "b2"})
    bench.add(key, "b");
  CHECK(bench.run_all() == Keys{"b1", "a1", "b2", "a2", "a3", "a4"});
}

TEST_CASE("a type all of whose leases hang does not hold up another") {
  Bench bench({one_type("hangs"), one_type("works")});
  for (int job = 0; job < 50; ++job) {
    bench.add("h" + std::to_string(job), "hangs");
    bench.add("w" + std::to_string(job), "works");
  }
  int done = 0;
  std::optional<FencingToken> hanging;
  for (auto taken = bench.leases.take(bench.now); taken; taken = bench.leases.take(bench.now)) {
    REQUIRE(bench.leases.started(taken->token, bench.now));
    if (taken->type == "hangs") {
      CHECK_FALSE(hanging.has_value());
      hanging = taken->token;
    } else {
      CHECK(bench.settle(taken->token, Verdict::done) == Settlement::done);
      ++done;
    }
    bench.now += 1s;
    if (hanging) bench.leases.heartbeat(*hanging, bench.now);
  }
  CHECK(done == 50);
}

TEST_CASE("each verdict has its settlement and a job that is not tried again is forgotten") {
  const std::vector<std::pair<Verdict, Settlement>> settlements{
      {Verdict::done, Settlement::done}, {Verdict::refused, Settlement::refused}, {Verdict::unknown, Settlement::held}};
  for (const auto &[verdict, settlement] : settlements) {
    Bench bench;
    bench.add("k");
    CHECK(bench.settle(bench.run().token, verdict) == settlement);
    CHECK(bench.leases.counters("t") == counted(0, 0, 0));
    CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
    CHECK(bench.add("k") == Added::waiting);
  }
}

TEST_CASE("a job that is tried again waits for a backoff that doubles up to its maximum") {
  LeaseOptions options = one_type();
  options.max_receive_count = 5;
  Bench bench({options});
  bench.add("k");
  for (const auto longest : {1s, 2s, 3s, 3s}) {
    CHECK(bench.settle(bench.run().token, Verdict::try_again) == Settlement::waiting);
    CHECK(bench.nothing_to_take());
    const auto waited = bench.wait();
    CHECK(waited >= longest / 2);
    CHECK(waited <= longest);
  }
}

TEST_CASE("a job that waits for its backoff holds up no other of its type") {
  Bench bench;
  bench.add("fails");
  bench.add("works");
  bench.settle(bench.run().token, Verdict::try_again);
  CHECK(bench.take().key == "works");
}

TEST_CASE("a job is handed over max_receive_count times and is then exhausted") {
  Bench bench;
  bench.add("k");
  std::vector<Settlement> settlements;
  for (std::uint32_t receive = 1; receive <= 3; ++receive) {
    const auto taken = bench.run();
    CHECK(taken.receives == receive);
    settlements.push_back(bench.settle(taken.token, Verdict::try_again));
    if (receive < 3) bench.wait();
  }
  CHECK(settlements == std::vector{Settlement::waiting, Settlement::waiting, Settlement::exhausted});
  CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
  CHECK(bench.leases.counters("t") == counted(0, 0, 0));

  SUBCASE("a redrive gives it as many again") {
    CHECK(bench.add("k") == Added::waiting);
    CHECK(bench.run().receives == 1);
  }
  SUBCASE("found again with its receives used up it is exhausted at once") {
    CHECK(bench.add("k", "t", 3) == Added::exhausted);
    CHECK(bench.add("k", "t", 1000) == Added::exhausted);
    CHECK(bench.nothing_to_take());
  }
}

TEST_CASE("the last receive may still settle as done") {
  Bench bench;
  bench.add("k", "t", 2);
  CHECK(bench.settle(bench.run().token, Verdict::done) == Settlement::done);
}

TEST_CASE("a lease that is not started does not expire") {
  Bench bench;
  bench.add("k");
  const auto taken = bench.take();
  CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
  bench.now += 24h;
  CHECK(bench.leases.expire(bench.now).empty());
  CHECK_FALSE(bench.leases.heartbeat(taken.token, bench.now));
  CHECK(bench.leases.started(taken.token, bench.now));
  CHECK(bench.leases.next_due(bench.now) == bench.now + 30s);
}

TEST_CASE("a lease expires when its visibility timeout has passed and its job is due again at once") {
  Bench bench;
  bench.add("k");
  const auto lost = bench.run();
  bench.now += 30s - 1ns;
  CHECK(bench.leases.expire(bench.now).empty());
  CHECK(bench.leases.next_due(bench.now) == bench.now + 1ns);
  bench.now += 1ns;
  const auto expired = bench.leases.expire(bench.now);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].token == lost.token);
  CHECK(expired[0].key == "k");
  CHECK(expired[0].type == "t");
  CHECK_FALSE(expired[0].exhausted);
  CHECK(bench.leases.expire(bench.now).empty());
  const auto second = bench.take();
  CHECK(second.receives == 2);
  CHECK(second.token > lost.token);
}

TEST_CASE("a heartbeat begins the visibility timeout anew") {
  Bench bench;
  bench.add("k");
  const auto taken = bench.run();
  for (int beat = 0; beat < 100; ++beat) {
    bench.now += 29s;
    CHECK(bench.leases.expire(bench.now).empty());
    CHECK(bench.leases.heartbeat(taken.token, bench.now));
  }
  CHECK(bench.wait() == 30s);
  CHECK(bench.leases.expire(bench.now).size() == 1);
  CHECK_FALSE(bench.leases.heartbeat(taken.token, bench.now));
}

TEST_CASE("a heartbeat or a settlement that comes late but before the lease is ended still counts") {
  Bench bench;
  bench.add("k");
  const auto taken = bench.run();
  bench.now += 31s;
  CHECK(bench.leases.heartbeat(taken.token, bench.now));
  CHECK(bench.leases.expire(bench.now).empty());
  bench.now += 31s;
  CHECK(bench.settle(taken.token, Verdict::done) == Settlement::done);
  CHECK(bench.leases.expire(bench.now).empty());
}

TEST_CASE("leases expire in the order of their times and a job at its last receive is exhausted") {
  Bench bench({with_concurrency(3)});
  bench.add("a", "t", 2);
  bench.add("b");
  bench.add("c");
  const auto first = bench.run();
  bench.now += 1s;
  bench.run();
  bench.run();
  bench.now += 1s;
  bench.leases.heartbeat(first.token, bench.now);
  bench.now += 29s;
  auto expired = bench.leases.expire(bench.now);
  REQUIRE(expired.size() == 2);
  CHECK(expired[0].key == "b");
  CHECK(expired[1].key == "c");
  bench.now += 1s;
  expired = bench.leases.expire(bench.now);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].key == "a");
  CHECK(expired[0].exhausted);
  CHECK(bench.leases.counters("t") == counted(2, 0, 0));
}

TEST_CASE("a settlement with an old token changes nothing and the second run's stands") {
  Bench bench;
  bench.add("k");
  const auto first = bench.run();
  bench.now += 30s;
  REQUIRE(bench.leases.expire(bench.now).size() == 1);
  for (const Verdict verdict : {Verdict::done, Verdict::refused, Verdict::try_again, Verdict::unknown})
    CHECK(bench.settle(first.token, verdict) == Settlement::stale);
  CHECK(bench.leases.counters("t") == counted(1, 0, 0));
  const auto second = bench.run();
  CHECK(bench.settle(first.token, Verdict::done) == Settlement::stale);
  CHECK_FALSE(bench.leases.heartbeat(first.token, bench.now));
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
  CHECK(bench.settle(second.token, Verdict::done) == Settlement::done);
  CHECK(bench.settle(second.token, Verdict::done) == Settlement::stale);
}

TEST_CASE("a token of another boot is stale") {
  Bench bench;
  bench.add("k");
  FencingToken token = bench.run().token;
  token.boot = boot - 1;
  CHECK(bench.settle(token, Verdict::done) == Settlement::stale);
  CHECK_FALSE(bench.leases.heartbeat(token, bench.now));
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
}

TEST_CASE("a lease given back uses up no receive and its job keeps its place") {
  Bench bench;
  bench.add("a");
  bench.add("b");
  const auto first = bench.take();
  CHECK(bench.leases.give_back(first.token, Obstacle::type, bench.now));
  CHECK_FALSE(bench.leases.started(first.token, bench.now));
  CHECK(bench.settle(first.token, Verdict::done) == Settlement::stale);
  bench.wait();
  const auto second = bench.take();
  CHECK(second.key == "a");
  CHECK(second.receives == 1);
  CHECK(second.token > first.token);
}

TEST_CASE("a lease that is started is not given back nor started again") {
  Bench bench;
  bench.add("k");
  const auto taken = bench.run();
  CHECK_FALSE(bench.leases.give_back(taken.token, Obstacle::type, bench.now));
  CHECK_FALSE(bench.leases.started(taken.token, bench.now));
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
}

TEST_CASE("a type that cannot be started waits with a backoff that a start ends and another type goes on") {
  Bench bench({one_type("absent"), one_type("works")});
  bench.add("a", "absent");
  for (const auto longest : {1s, 2s, 3s, 3s, 3s, 3s}) {
    const auto taken = bench.take();
    CHECK(taken.type == "absent");
    CHECK(taken.receives == 1);
    bench.leases.give_back(taken.token, Obstacle::type, bench.now);
    bench.add("w", "works");
    CHECK(bench.settle(bench.run().token, Verdict::done) == Settlement::done);
    CHECK(bench.nothing_to_take());
    const auto waited = bench.wait();
    CHECK(waited >= longest / 2);
    CHECK(waited <= longest);
  }
  bench.add("b", "absent");
  bench.settle(bench.run().token, Verdict::done);
  bench.leases.give_back(bench.take().token, Obstacle::type, bench.now);
  CHECK(bench.wait() <= 1s);
}

TEST_CASE("several that fail to start at once are one failure of their type") {
  Bench bench({with_concurrency(3)});
  std::vector<FencingToken> tokens;
  for (const char *key : {"a", "b", "c"}) {
    bench.add(key);
    tokens.push_back(bench.take().token);
  }
  for (const FencingToken &token : tokens)
    CHECK(bench.leases.give_back(token, Obstacle::type, bench.now));
  CHECK(bench.wait() <= 1s);
  CHECK(bench.run_all() == Keys{"a", "b", "c"});
}

TEST_CASE("a job whose former child may still run waits by itself") {
  Bench bench;
  bench.add("a");
  bench.add("b");
  CHECK(bench.leases.give_back(bench.take().token, Obstacle::job, bench.now));
  bench.settle(bench.run().token, Verdict::done);
  CHECK(bench.nothing_to_take());
  const auto waited = bench.wait();
  CHECK(waited >= 500ms);
  CHECK(waited <= 1s);
  const auto again = bench.take();
  CHECK(again.key == "a");
  CHECK(again.receives == 1);
}

TEST_CASE("while it drains nothing is taken and what runs is settled or given back or expires") {
  Bench bench({with_concurrency(3)});
  for (const char *key : {"a", "b", "c", "d"})
    bench.add(key);
  const auto starting = bench.take();
  const auto running = bench.run();
  bench.run();
  bench.leases.drain();
  CHECK(bench.nothing_to_take());
  CHECK(bench.leases.next_due(bench.now) == bench.now + 30s);
  CHECK(bench.leases.give_back(starting.token, Obstacle::type, bench.now));
  CHECK(bench.settle(running.token, Verdict::try_again) == Settlement::waiting);
  bench.now += 30s;
  CHECK(bench.leases.expire(bench.now).size() == 1);
  CHECK(bench.leases.counters("t") == counted(4, 0, 0));
  CHECK(bench.nothing_to_take());
  CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
}

TEST_CASE("what is over its places stays in the store and is asked for when half of them are free") {
  Bench bench({with_places(4), one_type("u")});
  for (const char *key : {"a", "b", "c", "d"})
    CHECK(bench.add(key) == Added::waiting);
  CHECK(bench.leases.begin_refill().empty());
  CHECK(bench.add("e") == Added::full);
  CHECK(bench.leases.counters("t") == counted(4, 0, 0, true));
  CHECK(bench.add("u1", "u") == Added::waiting);
  CHECK(bench.leases.begin_refill().empty());

  const auto end_one = [&bench] {
    auto taken = bench.run();
    if (taken.type == "u") taken = bench.run();
    bench.settle(taken.token, Verdict::done);
  };
  end_one();
  CHECK(bench.leases.begin_refill().empty());
  end_one();
  CHECK(bench.leases.begin_refill() == std::vector<std::string_view>{"t"});
  CHECK(bench.leases.begin_refill().empty());
  CHECK(bench.add("c") == Added::known);
  CHECK(bench.add("e") == Added::waiting);
  CHECK(bench.leases.counters("t").more_in_store == false);
}

TEST_CASE("a newer job does not go before those that stay in the store") {
  Bench bench({with_places(2)});
  for (const char *key : {"a", "b", "c"})
    bench.add(key);
  bench.settle(bench.run().token, Verdict::done);
  CHECK(bench.add("d") == Added::full);
  REQUIRE(bench.leases.begin_refill().size() == 1);
  CHECK(bench.add("c") == Added::waiting);
  CHECK(bench.add("d") == Added::full);
  bench.settle(bench.run().token, Verdict::done);
  REQUIRE(bench.leases.begin_refill().size() == 1);
  CHECK(bench.add("d") == Added::waiting);
}

TEST_CASE("a leased job keeps its place among those in memory") {
  Bench bench({with_places(1)});
  bench.add("a");
  const auto taken = bench.run();
  CHECK(bench.add("b") == Added::full);
  CHECK(bench.leases.begin_refill().empty());
  CHECK(bench.settle(taken.token, Verdict::try_again) == Settlement::waiting);
  CHECK(bench.leases.begin_refill().empty());
}

TEST_CASE("a visibility timeout beyond the longest timer is cut to it") {
  LeaseOptions options = one_type();
  options.visibility_timeout = std::chrono::milliseconds::max();
  Bench bench({options});
  bench.add("k");
  bench.run();
  CHECK(bench.wait() == onced::limits::retry_delay_max);
}

TEST_CASE("tokens show as text that sorts as they do") {
  CHECK(text_of({1, 2}) == "00000000000000010000000000000002");
  CHECK(text_of({0x0123456789abcdef, 0xfedcba9876543210}) == "0123456789abcdeffedcba9876543210");
  CHECK(text_of({1, 0xffff}) < text_of({2, 1}));
  CHECK(text_of({2, 9}) < text_of({2, 10}));
}

TEST_CASE("no call scans the jobs that wait") {
  // A scan in any call would make it 20 thousand million steps, beyond the time limit of the test.
  constexpr std::size_t jobs = 100'000;
  Bench bench({with_places(jobs)});
  for (std::size_t job = 0; job < jobs; ++job)
    bench.add(std::to_string(job));
  std::size_t done = 0;
  for (std::size_t step = 0; step < 2 * jobs; ++step) {
    const auto taken = bench.leases.take(bench.now);
    if (!taken) {
      bench.now = bench.leases.next_due(bench.now).value();
      continue;
    }
    const bool fails = taken->receives == 1;
    bench.leases.started(taken->token, bench.now);
    bench.leases.heartbeat(taken->token, bench.now);
    const auto settlement = bench.settle(taken->token, fails ? Verdict::try_again : Verdict::done);
    done += settlement == Settlement::done ? 1U : 0U;
  }
  CHECK(done > 0);
  CHECK(bench.leases.counters("t").waiting + done == jobs);
}

TEST_CASE("a lease whose handler has ended does not expire before it is settled") {
  Bench bench;
  bench.add("k");
  const auto lease = bench.run();
  CHECK(bench.leases.ended(lease.token));
  bench.now += one_type().visibility_timeout * 10;
  CHECK(bench.leases.expire(bench.now).empty());
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
  CHECK_FALSE(bench.leases.heartbeat(lease.token, bench.now));
  CHECK_FALSE(bench.leases.ended(lease.token));
  CHECK(bench.settle(lease.token, Verdict::try_again) == Settlement::waiting);
  CHECK(bench.leases.counters("t") == counted(1, 0, 0));
}

TEST_CASE("a handler that ends after its lease has expired is told so") {
  Bench bench;
  bench.add("k");
  const auto lease = bench.run();
  bench.now += one_type().visibility_timeout;
  CHECK(bench.leases.expire(bench.now).size() == 1);
  CHECK_FALSE(bench.leases.ended(lease.token));
}

TEST_CASE("the oldest job is the one that was accepted first of all that have not ended") {
  Bench bench({with_places(2)});
  CHECK_FALSE(bench.leases.oldest_since("t").has_value());
  const auto accepted = [&](std::string_view key, std::chrono::seconds ago) {
    return bench.leases.add(key, "t", 0, bench.now - ago, bench.now);
  };
  CHECK(accepted("young", 1s) == Added::waiting);
  CHECK(accepted("older", 5s) == Added::waiting);
  CHECK(bench.leases.oldest_since("t") == bench.now - 5s);
  CHECK(accepted("stays in the store", 9s) == Added::full);
  CHECK(bench.leases.oldest_since("t") == bench.now - 9s);
  CHECK(bench.settle(bench.run().token, Verdict::done) == Settlement::done);
  CHECK(bench.leases.begin_refill().size() == 1);
  CHECK(bench.leases.oldest_since("t") == bench.now - 5s);
  CHECK(bench.settle(bench.run().token, Verdict::refused) == Settlement::refused);
  CHECK_FALSE(bench.leases.oldest_since("t").has_value());
  CHECK_FALSE(bench.leases.oldest_since("unknown").has_value());
}
