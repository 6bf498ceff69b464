// Verifies rules of the leases' state machine by themselves: leases that are given back, the drain, and how many jobs
// are in memory. Not verified here: what leases_test.cpp verifies.
#include "unit/runner/leases_bench.hpp"

using namespace onced::testing::leases;

TEST_CASE("a lease given back uses up no receive and its job keeps its place") {
  Bench bench;
  bench.add("a");
  bench.add("b");
  const auto first = bench.take();
  CHECK(bench.leases.give_back(first.token, Obstacle::type, bench.now));
  CHECK_FALSE(bench.leases.started(first.token, bench.now));
  CHECK_FALSE(bench.forget(first.token));
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
    CHECK(bench.forget(bench.run().token));
    CHECK(bench.nothing_to_take());
    const auto waited = bench.wait();
    CHECK(waited >= longest / 2);
    CHECK(waited <= longest);
  }
  bench.add("b", "absent");
  bench.forget(bench.run().token);
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
  bench.forget(bench.run().token);
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
  CHECK(bench.retry(running.token));
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
    bench.forget(taken.token);
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
  bench.forget(bench.run().token);
  CHECK(bench.add("d") == Added::full);
  REQUIRE(bench.leases.begin_refill().size() == 1);
  CHECK(bench.add("c") == Added::waiting);
  CHECK(bench.add("d") == Added::full);
  bench.forget(bench.run().token);
  REQUIRE(bench.leases.begin_refill().size() == 1);
  CHECK(bench.add("d") == Added::waiting);
}

TEST_CASE("a leased job keeps its place among those in memory") {
  Bench bench({with_places(1)});
  bench.add("a");
  const auto taken = bench.run();
  CHECK(bench.add("b") == Added::full);
  CHECK(bench.leases.begin_refill().empty());
  CHECK(bench.retry(taken.token));
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
    const auto taken = bench.try_take();
    if (!taken) {
      bench.now = bench.leases.next_due(bench.now).value();
      continue;
    }
    const bool fails = taken->receives == 1;
    bench.leases.started(taken->token, bench.now);
    bench.leases.heartbeat(taken->token, bench.now);
    const bool is_known = fails ? bench.retry(taken->token) : bench.forget(taken->token);
    CHECK(is_known);
    done += fails ? 0U : 1U;
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
  CHECK(bench.retry(lease.token));
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
  CHECK(bench.forget(bench.run().token));
  CHECK(bench.leases.begin_refill().size() == 1);
  CHECK(bench.leases.oldest_since("t") == bench.now - 5s);
  CHECK(bench.forget(bench.run().token));
  CHECK_FALSE(bench.leases.oldest_since("t").has_value());
  CHECK_FALSE(bench.leases.oldest_since("unknown").has_value());
}
