// The cache of committed jobs: what it holds and what it forgets, and that the store never answers from it what is not
// on stable storage. Does not verify kills between a commit and the cache: tests/crash kills at worker.after-commit.
#include "store/cache/committed_cache.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <unordered_map>

#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

constexpr std::size_t set_bytes = 64 + 8 * 192UL; // one of them is eight entries

// What is kept of a key; empty: nothing.
Bytes value_of(ByteCache &cache, BytesView key) {
  Bytes found;
  static_cast<void>(cache.find(key, [&](BytesView value) { found = Bytes(value); }));
  return found;
}

// A store whose counters are looked at.
struct CountingStore : StoreHarness {
  CountingStore() { options.counters = &counters; }

  // The result of what is recalled by these bytes; empty: nothing is.
  [[nodiscard]] Bytes recalled(BytesView job) const {
    Recollection recollection;
    store->recall(std::span(&job, 1), std::span(&recollection, 1));
    if (recollection.committed) CHECK(recollection.tag == Digester().tag(job));
    return recollection.committed ? recollection.result : Bytes();
  }
  StoreCounters counters;
};

// The job of `job_bytes(id, {number})`, its members the other way round.
Bytes turned_round(std::string_view id, std::uint64_t number) {
  Bytes bytes;
  messagepack::Writer writer(bytes);
  writer.map(2).string("numbers").array(1).positive(number).string("operation_id").string(id);
  return bytes;
}

// Too long for a slot of the cache.
Bytes long_job(std::string_view id) {
  return job_bytes(id, std::vector<std::int64_t>(200, 1));
}

// What a slot is told by before its bytes are compared.
std::uint32_t tag_of(const Bytes &key) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(key) >> 32U) | 1U;
}

// Two keys with the same tag.
std::pair<Bytes, Bytes> look_alikes() {
  std::unordered_map<std::uint32_t, Bytes> seen;
  for (unsigned number = 0; number < 1'000'000; ++number) {
    const Bytes key = "key " + std::to_string(number);
    const auto [there, is_new] = seen.try_emplace(tag_of(key), key);
    if (!is_new && there->second.size() == key.size()) return {there->second, key};
  }
  return {};
}

} // namespace

TEST_CASE("a key that was kept is found with its value and no other key is") {
  ByteCache cache(64 * set_bytes);
  CHECK(value_of(cache, "key 1").empty());
  cache.keep("key 1", "on", "e");
  CHECK(value_of(cache, "key 1") == "one");
  CHECK(value_of(cache, "key 2").empty());
  CHECK(value_of(cache, "key").empty());
}

TEST_CASE("keys whose hashes look alike are told apart by their bytes") {
  const auto [first, second] = look_alikes();
  REQUIRE(first != second);
  ByteCache cache(set_bytes);
  cache.keep(first, "one");
  CHECK(value_of(cache, second).empty());
  cache.keep(second, "two");
  CHECK(value_of(cache, first) == "one");
  CHECK(value_of(cache, second) == "two");
}

TEST_CASE("many keys are found at once and each by its own value") {
  ByteCache cache(64 * set_bytes);
  std::vector<Bytes> names;
  for (unsigned number = 0; number < 100; ++number)
    names.push_back("key " + std::to_string(number));
  for (unsigned number = 0; number < 100; number += 3)
    cache.keep(names[number], "value " + std::to_string(number));
  const std::vector<BytesView> keys(names.begin(), names.end());
  std::vector<std::size_t> found;
  cache.find_all(keys, [&](std::size_t at, BytesView value) {
    found.push_back(at);
    CHECK(value == "value " + std::to_string(at));
  });
  CHECK(found.size() == 34);
  CHECK(std::all_of(found.begin(), found.end(), [](std::size_t at) { return at % 3 == 0; }));
  ByteCache(0).find_all(keys, [](std::size_t, BytesView) { FAIL("nothing is kept there"); });
}

TEST_CASE("the first value of a key stays") {
  ByteCache cache(set_bytes);
  cache.keep("key 1", "one");
  cache.keep("key 1", "two");
  CHECK(value_of(cache, "key 1") == "one");
}

TEST_CASE("a full cache forgets what nobody asked for and keeps what was") {
  ByteCache cache(set_bytes);
  for (unsigned number = 0; number < 8; ++number)
    cache.keep("key " + std::to_string(number), std::to_string(number));
  CHECK(value_of(cache, "key 3") == "3");
  for (unsigned number = 8; number < 15; ++number)
    cache.keep("key " + std::to_string(number), std::to_string(number));
  CHECK(value_of(cache, "key 3") == "3");
  unsigned held = 0;
  for (unsigned number = 0; number < 15; ++number) {
    const Bytes value = value_of(cache, "key " + std::to_string(number));
    if (value.empty()) continue;
    ++held;
    CHECK(value == std::to_string(number));
  }
  CHECK(held == 8);
}

TEST_CASE("what is too long for a slot is not kept and harms nothing") {
  ByteCache cache(set_bytes);
  cache.keep("key 1", "one");
  cache.keep("key 2", Bytes(ByteCache::text_bytes_max - 5, 'x'));
  cache.keep("key 3", Bytes(ByteCache::text_bytes_max - 5, 'x'), "x");
  cache.keep(Bytes(1000, 'k'), "long");
  CHECK(value_of(cache, "key 1") == "one");
  CHECK(value_of(cache, "key 2").size() == ByteCache::text_bytes_max - 5);
  CHECK(value_of(cache, "key 3").empty());
  CHECK(value_of(cache, Bytes(1000, 'k')).empty());
}

TEST_CASE("a cache without a byte holds nothing") {
  ByteCache cache(0);
  cache.keep("key 1", "one");
  CHECK(value_of(cache, "key 1").empty());
}

TEST_CASE("a job is recalled by the very bytes in which it was delivered once it is committed") {
  CountingStore harness;
  harness.open();
  CHECK(harness.recalled(job_bytes("demo-1", {1})).empty());
  const auto stored = harness.commit_one(job_bytes("demo-1", {1}));
  CHECK(harness.recalled(job_bytes("demo-1", {1})) == stored.result);
  CHECK(harness.recalled(job_bytes("demo-2", {1})).empty());
  CHECK(harness.recalled(job_bytes("demo-1", {2})).empty());
  CHECK(harness.recalled(turned_round("demo-1", 1)).empty());
}

TEST_CASE("what conflicts is never recalled however often it is delivered") {
  CountingStore harness;
  harness.open();
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  for (int time = 0; time < 3; ++time) {
    CHECK(harness.commit_one(job_bytes("demo-1", {2})).outcome == Outcome::conflict);
    CHECK(harness.recalled(job_bytes("demo-1", {2})).empty());
  }
  CHECK(harness.dead_letters().size() == 1);
}

TEST_CASE("a duplicate in other bytes is recalled by them after it was looked up") {
  CountingStore harness;
  harness.open();
  const auto stored = harness.commit_one(job_bytes("demo-1", {1}));
  const auto duplicate = harness.commit_one(turned_round("demo-1", 1));
  CHECK(duplicate.outcome == Outcome::duplicate);
  CHECK(duplicate.result == stored.result);
  CHECK(harness.recalled(turned_round("demo-1", 1)) == stored.result);
  CHECK(harness.recalled(job_bytes("demo-1", {1})) == stored.result);
}

TEST_CASE("bytes that are no job and jobs that fail are never recalled") {
  CountingStore harness;
  harness.open();
  const Bytes overflow = job_bytes("demo-1", {INT64_MAX, 1});
  for (int time = 0; time < 2; ++time) {
    CHECK(harness.commit_one("no job").outcome == Outcome::invalid);
    CHECK(harness.commit_one(overflow).outcome == Outcome::failed);
  }
  CHECK(harness.recalled("no job").empty());
  CHECK(harness.recalled(overflow).empty());
}

TEST_CASE("a duplicate of a long job and a conflict with it are answered from the cache by its key") {
  CountingStore harness;
  harness.open();
  const auto stored = harness.commit_one(long_job("demo-1"));
  CHECK(harness.counters.cache_hits == 0);
  const auto settled = harness.commit({long_job("demo-1"), job_bytes("demo-1", {9})});
  CHECK(harness.counters.cache_hits == 2);
  CHECK(outcomes_of(settled) == std::vector{Outcome::duplicate, Outcome::conflict});
  CHECK(settled[0].result == stored.result);
  CHECK(harness.recalled(long_job("demo-1")).empty());
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
  CHECK(harness.recalled(batch.view()[0].bytes).empty());
  faults->release_log_syncs();
  first_thread.join();
  second_thread.join();
  CHECK(first.outcome == Outcome::stored);
  CHECK(second.outcome == Outcome::duplicate);
  CHECK(second.result == first.result);
  CHECK(harness.recalled(batch.view()[0].bytes) == first.result);
}

TEST_CASE("a store that has failed does not even settle a batch of nothing") {
  CountingStore harness;
  const auto faults = std::make_shared<Faults>();
  harness.options.environment = faulty_environment(faults);
  harness.open();
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  CHECK(harness.store->commit({}, harness.handlers).has_value());
  faults->fail_from(FaultAt::log_sync, 1);
  CHECK_FALSE(harness.store->commit(Batch({job_bytes("demo-2", {1})}).view(), harness.handlers).has_value());
  CHECK_FALSE(harness.store->commit({}, harness.handlers).has_value());
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
  CHECK(harness.recalled(job_bytes("demo-1", {1})).empty());
}
