// The cache of committed keys: what it holds and what it forgets, and that the store never answers from it what is not
// on stable storage. Does not verify kills between a commit and the cache: tests/crash kills at worker.after-commit.
#include "store/committed_cache.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "support/faulty_environment.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

constexpr std::size_t set_bytes = 64 + 8 * 192UL; // one of them is eight rows

Key key_number(unsigned number) {
  return key_of_operation("sum", "job-" + std::to_string(number));
}

Digest digest_number(unsigned number) {
  Digest digest;
  digest.bytes.fill(static_cast<std::uint8_t>(number));
  return digest;
}

// A store whose counters are looked at.
struct CountingStore : StoreHarness {
  CountingStore() { options.counters = &counters; }
  StoreCounters counters;
};

} // namespace

TEST_CASE("a key that was kept is found with its digest and result and no other key is") {
  CommittedCache cache(64 * set_bytes);
  KeyRow row;
  CHECK_FALSE(cache.find(key_number(1), row));
  cache.keep(key_number(1), digest_number(1), "one");
  CHECK(cache.find(key_number(1), row));
  CHECK(row.is_committed());
  CHECK(row.digest == digest_number(1));
  CHECK(row.result == "one");
  CHECK_FALSE(cache.find(key_number(2), row));
}

TEST_CASE("the first row of a key stays") {
  CommittedCache cache(set_bytes);
  cache.keep(key_number(1), digest_number(1), "one");
  cache.keep(key_number(1), digest_number(2), "two");
  KeyRow row;
  CHECK(cache.find(key_number(1), row));
  CHECK(row.digest == digest_number(1));
  CHECK(row.result == "one");
}

TEST_CASE("a full cache forgets what nobody asked for and keeps what was") {
  CommittedCache cache(set_bytes);
  KeyRow row;
  for (unsigned number = 0; number < 8; ++number)
    cache.keep(key_number(number), digest_number(number), std::to_string(number));
  CHECK(cache.find(key_number(3), row));
  for (unsigned number = 8; number < 15; ++number)
    cache.keep(key_number(number), digest_number(number), std::to_string(number));
  CHECK(cache.find(key_number(3), row));
  CHECK(row.result == "3");
  unsigned held = 0;
  for (unsigned number = 0; number < 15; ++number) {
    if (!cache.find(key_number(number), row)) continue;
    ++held;
    CHECK(row.digest == digest_number(number));
    CHECK(row.result == std::to_string(number));
  }
  CHECK(held == 8);
}

TEST_CASE("a row that is too long for a slot is not kept and harms no other") {
  CommittedCache cache(set_bytes);
  cache.keep(key_number(1), digest_number(1), "one");
  cache.keep(key_number(2), digest_number(2), Bytes(1000, 'x'));
  const Key longest = key_of_operation(std::string(64, 't'), std::string(255, 'i'));
  cache.keep(longest, digest_number(3), "three");
  KeyRow row;
  CHECK_FALSE(cache.find(key_number(2), row));
  CHECK_FALSE(cache.find(longest, row));
  CHECK(cache.find(key_number(1), row));
  CHECK(row.result == "one");
}

TEST_CASE("a cache without a byte holds nothing") {
  CommittedCache cache(0);
  cache.keep(key_number(1), digest_number(1), "one");
  KeyRow row;
  CHECK_FALSE(cache.find(key_number(1), row));
}

TEST_CASE("a duplicate of a job committed a moment ago and a conflict with it are answered from the cache") {
  CountingStore harness;
  harness.open();
  const auto stored = harness.commit_one(job_bytes("demo-1", {1, 2, 3}));
  CHECK(harness.counters.cache_hits == 0);
  const auto settled = harness.commit({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})});
  CHECK(harness.counters.cache_hits == 2);
  CHECK(outcomes_of(settled) == std::vector{Outcome::duplicate, Outcome::conflict});
  CHECK(settled[0].result == stored.result);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].bytes == job_bytes("demo-1", {9}));
  CHECK(letters[0].stored_digest == harness.row("demo-1")->digest);
  CHECK(harness.counts().results == 1);
}

TEST_CASE("what a look-up has found is in the cache after it") {
  CountingStore harness;
  harness.open();
  const auto stored = harness.commit_one(job_bytes("demo-1", {1, 2, 3}));
  harness.reopen();
  CHECK(harness.commit_one(job_bytes("demo-1", {1, 2, 3})).outcome == Outcome::duplicate);
  CHECK(harness.counters.cache_hits == 0);
  const auto again = harness.commit_one(job_bytes("demo-1", {1, 2, 3}));
  CHECK(harness.counters.cache_hits == 1);
  CHECK(again.outcome == Outcome::duplicate);
  CHECK(again.result == stored.result);
}

TEST_CASE("a redriven job is found by its next delivery") {
  CountingStore harness;
  harness.open();
  const Bytes job = job_bytes({.operation_id = "demo-1", .numbers = {1}, .type = "later"});
  CHECK(harness.commit_one(job).outcome == Outcome::invalid);
  CHECK(harness.handlers.add_inline("later", [](const HandlerCall &) { return Done{integer_result(1)}; }).has_value());
  const auto redriven = harness.store->redrive(harness.dead_letters().at(0).id, harness.handlers, kim);
  REQUIRE(redriven.has_value());
  CHECK(redriven->settlement.outcome == Outcome::stored);
  CHECK(harness.commit_one(job).outcome == Outcome::duplicate);
  CHECK(harness.commit_one(job).outcome == Outcome::duplicate);
  CHECK(harness.counters.cache_hits == 1);
}

TEST_CASE("a duplicate is not answered before the sync of its original has returned") {
  CountingStore harness;
  const auto faults = std::make_shared<Faults>();
  harness.options.environment = faulty_environment(faults);
  std::atomic<int> runs{0};
  const auto handler = [&](const HandlerCall &) -> HandlerResult { return Done{integer_result(++runs)}; };
  CHECK(harness.handlers.add_inline("counted", handler).has_value());
  harness.open();
  const Batch batch({job_bytes({.operation_id = "demo-1", .numbers = {1}, .type = "counted"})});
  const auto commit = [&](std::atomic<bool> &answered, Settlement &settled) {
    if (auto answer = harness.store->commit(batch.view(), harness.handlers)) settled = std::move(answer->at(0));
    answered = true;
  };
  const auto eventually = [](const auto &condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return condition();
  };
  std::atomic<bool> first_answered{false};
  std::atomic<bool> second_answered{false};
  Settlement first;
  Settlement second;
  const auto syncs = faults->calls(FaultAt::log_sync);
  faults->hold_log_syncs();
  std::thread first_thread([&] { commit(first_answered, first); });
  CHECK(eventually([&] { return faults->calls(FaultAt::log_sync) == syncs + 1; }));
  std::thread second_thread([&] { commit(second_answered, second); });
  // It has looked the key up and found nothing; or it was answered.
  CHECK(eventually([&] { return runs == 2 || second_answered; }));
  CHECK_FALSE(second_answered);
  CHECK_FALSE(first_answered);
  faults->release_log_syncs();
  first_thread.join();
  second_thread.join();
  CHECK(first.outcome == Outcome::stored);
  CHECK(second.outcome == Outcome::duplicate);
  CHECK(second.result == first.result);
  CHECK(harness.counters.cache_hits == 0);
}

TEST_CASE("a job whose commit failed is not in the cache") {
  CountingStore harness;
  const auto faults = std::make_shared<Faults>();
  harness.options.environment = faulty_environment(faults);
  harness.open();
  faults->fail_from(FaultAt::log_sync, 1);
  const Batch batch({job_bytes("demo-1", {1})});
  CHECK_FALSE(harness.store->commit(batch.view(), harness.handlers).has_value());
  faults->clear();
  const auto again = harness.store->commit(batch.view(), harness.handlers);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().code == ErrorCode::store_unavailable);
  CHECK(harness.counters.cache_hits == 0);
}
