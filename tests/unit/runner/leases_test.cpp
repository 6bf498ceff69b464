// Verifies each rule of the leases' state machine by itself: taking, trying again, forgetting, expiring. Not verified
// here: leases that do not start, and places (leases_limits_test.cpp), long mixed histories (leases_model_test.cpp),
// and that the caller writes what it must before it goes on.
#include "unit/runner/leases_bench.hpp"

using namespace onced::testing::leases;

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
  bench.retry(taken.token);
  CHECK(bench.add("k") == Added::known);
  bench.wait();
  bench.forget(bench.run().token);
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
  bench.forget(first.token);
  CHECK(bench.take().key == "c");
}

TEST_CASE("a type all of whose leases hang does not hold up another") {
  Bench bench({one_type("hangs"), one_type("works")});
  for (int job = 0; job < 50; ++job) {
    bench.add("h" + std::to_string(job), "hangs");
    bench.add("w" + std::to_string(job), "works");
  }
  int done = 0;
  std::optional<FencingToken> hanging;
  for (auto taken = bench.try_take(); taken; taken = bench.try_take()) {
    REQUIRE(bench.leases.started(taken->token, bench.now));
    if (taken->type == "hangs") {
      CHECK_FALSE(hanging.has_value());
      hanging = taken->token;
    } else {
      CHECK(bench.forget(taken->token));
      ++done;
    }
    bench.now += 1s;
    if (hanging) bench.leases.heartbeat(*hanging, bench.now);
  }
  CHECK(done == 50);
}

TEST_CASE("a job that is forgotten leaves nothing and may be added again") {
  Bench bench;
  bench.add("k");
  CHECK(bench.forget(bench.run().token));
  CHECK(bench.leases.counters("t") == counted(0, 0, 0));
  CHECK_FALSE(bench.leases.next_due(bench.now).has_value());
  CHECK(bench.add("k") == Added::waiting);
}

TEST_CASE("a job that is tried again waits for a backoff that doubles up to its maximum") {
  LeaseOptions options = one_type();
  options.max_receive_count = 5;
  Bench bench({options});
  bench.add("k");
  for (const auto longest : {1s, 2s, 3s, 3s}) {
    CHECK(bench.retry(bench.run().token));
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
  bench.retry(bench.run().token);
  CHECK(bench.take().key == "works");
}

TEST_CASE("a job whose lease expires is handed over max_receive_count times and is then exhausted") {
  Bench bench;
  bench.add("k");
  for (std::uint32_t receive = 1; receive <= 3; ++receive) {
    CHECK(bench.run().receives == receive);
    bench.wait();
    const auto expired = bench.leases.expire(bench.now);
    REQUIRE(expired.size() == 1);
    CHECK(expired[0].exhausted == (receive == 3));
  }
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

TEST_CASE("the last receive may still be forgotten") {
  Bench bench;
  bench.add("k", "t", 2);
  CHECK(bench.forget(bench.run().token));
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
  CHECK(bench.forget(taken.token));
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
  CHECK_FALSE(bench.forget(first.token));
  CHECK_FALSE(bench.retry(first.token));
  CHECK(bench.leases.counters("t") == counted(1, 0, 0));
  const auto second = bench.run();
  CHECK_FALSE(bench.forget(first.token));
  CHECK_FALSE(bench.leases.heartbeat(first.token, bench.now));
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
  CHECK(bench.forget(second.token));
  CHECK_FALSE(bench.forget(second.token));
}

TEST_CASE("a token of another boot is stale") {
  Bench bench;
  bench.add("k");
  FencingToken token = bench.run().token;
  token.boot = boot - 1;
  CHECK_FALSE(bench.forget(token));
  CHECK_FALSE(bench.leases.heartbeat(token, bench.now));
  CHECK(bench.leases.counters("t") == counted(0, 0, 1));
}
