// The outcomes of one store, one thread: what is stored, what is a duplicate, and what writes nothing.
#include <doctest/doctest.h>

#include "support/raw_database.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

using Outcomes = std::vector<Outcome>;

// What is on disk: a change of the last sequence number is a write.
struct Written {
  explicit Written(StoreHarness &harness) {
    harness.close();
    const RawDatabase raw(harness.directory.path());
    sequence = raw.last_sequence();
    operations = raw.rows("operations");
    dead_letters = raw.rows("dead_letters");
  }
  std::uint64_t sequence = 0;
  std::map<Bytes, Bytes> operations;
  std::map<Bytes, Bytes> dead_letters;
};

} // namespace

TEST_CASE("a new job is stored with its result and its row says everything about it") {
  StoreHarness harness;
  harness.open();
  const auto settlement = harness.commit_one(job_bytes("demo-1", {1, 2, 3}));
  CHECK(settlement.outcome == Outcome::stored);
  CHECK(settlement.result == integer_result(6));
  CHECK(settlement.detail.empty());

  const auto row = harness.row("demo-1");
  REQUIRE(row);
  CHECK(row->phase == Phase::committed);
  CHECK(row->result == integer_result(6));
  CHECK(row->operation_id == "demo-1");
  CHECK(row->type == "sum");
  CHECK(row->effect_key.empty());
  CHECK(row->issued_at == WallTime{std::chrono::microseconds{1'699'999'999'000'000}});
  CHECK(row->committed_at == harness.clock.now);
  CHECK(!row->worker_build.empty());
  CHECK(row->durability == Durability::fsync);
  const Batch same({job_bytes("demo-1", {1, 2, 3})});
  CHECK(row->digest == same.view()[0].digest);
  CHECK(harness.counts().results == 1);
  CHECK(harness.counts().dead_letters == 0);
  CHECK(harness.counts().pending == 0);
}

TEST_CASE("a key that was never committed has no row") {
  StoreHarness harness;
  harness.open();
  CHECK(!harness.row("demo-1"));
  CHECK(harness.counts().results == 0);
}

TEST_CASE("an empty batch settles nothing") {
  StoreHarness harness;
  harness.open();
  CHECK(harness.commit(Batch()).empty());
}

TEST_CASE("the same job is a duplicate in its batch and in another batch and after a reopening") {
  StoreHarness harness;
  harness.open();
  const Bytes job = job_bytes("demo-1", {1, 2, 3});
  const auto first = harness.commit({job, job, job});
  CHECK(outcomes_of(first) == Outcomes{Outcome::stored, Outcome::duplicate, Outcome::duplicate});
  for (const auto &settlement : first)
    CHECK(settlement.result == integer_result(6));

  const auto warm = harness.commit_one(job);
  CHECK(warm.outcome == Outcome::duplicate);
  CHECK(warm.result == integer_result(6));

  harness.reopen();
  const auto cold = harness.commit_one(job);
  CHECK(cold.outcome == Outcome::duplicate);
  CHECK(cold.result == integer_result(6));
  CHECK(harness.counts().results == 1);
  CHECK(harness.counts().dead_letters == 0);
}

TEST_CASE("duplicates write nothing") {
  StoreHarness harness;
  harness.open();
  const Bytes job = job_bytes("demo-1", {1, 2, 3});
  CHECK(harness.commit_one(job).outcome == Outcome::stored);
  const Written before(harness);

  harness.open();
  harness.clock.now += std::chrono::hours(1);
  for (int round = 0; round < 20; ++round)
    CHECK(outcomes_of(harness.commit({job, job})) == Outcomes{Outcome::duplicate, Outcome::duplicate});
  const Written after(harness);

  CHECK(after.operations == before.operations);
  // Beginning a boot writes three rows, `format`, `boots` and `identity`; the forty duplicates wrote none.
  CHECK(after.sequence == before.sequence + 3);
}

TEST_CASE("another payload under the same key is a conflict first and warm and after a reopening") {
  StoreHarness harness;
  harness.open();
  const Bytes good = job_bytes("demo-1", {1, 2, 3});
  const Bytes other = job_bytes("demo-1", {9});
  const auto first = harness.commit({good, other});
  CHECK(outcomes_of(first) == Outcomes{Outcome::stored, Outcome::conflict});
  CHECK(first[1].result.empty());
  CHECK(!first[1].detail.empty());
  const auto row = harness.row("demo-1");

  CHECK(harness.commit_one(other).outcome == Outcome::conflict);
  harness.reopen();
  CHECK(harness.commit_one(other).outcome == Outcome::conflict);
  CHECK(harness.commit_one(good).outcome == Outcome::duplicate);

  const auto same_row = harness.row("demo-1");
  REQUIRE(same_row);
  CHECK(same_row->result == integer_result(6));
  CHECK(same_row->digest == row->digest);
  CHECK(same_row->committed_at == row->committed_at);

  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  const Batch batch({good, other});
  CHECK(letters[0].reason == Outcome::conflict);
  CHECK(letters[0].bytes == other);
  CHECK(letters[0].stored_digest == batch.view()[0].digest);
  CHECK(letters[0].offered_digest == batch.view()[1].digest);
  CHECK(letters[0].deliveries == 3);
}

TEST_CASE("the same numbers in another order conflict and as floats are a duplicate") {
  StoreHarness harness;
  harness.open();
  Bytes floats;
  messagepack::Writer writer(floats);
  writer.map(2).string("numbers").array(3).floating(1.0).integer(2).integer(3);
  writer.string("operation_id").string("demo-1");
  CHECK(harness.commit_one(job_bytes("demo-1", {1, 2, 3})).outcome == Outcome::stored);
  CHECK(harness.commit_one(job_bytes("demo-1", {3, 2, 1})).outcome == Outcome::conflict);
  CHECK(harness.commit_one(floats).outcome == Outcome::duplicate);
}

TEST_CASE("outcomes come in the order of the deliveries and one bad or conflicting job does not stop the others") {
  StoreHarness harness;
  harness.open();
  CHECK(harness.commit_one(job_bytes("m", {1})).outcome == Outcome::stored);
  // Keys neither sorted nor unique.
  const auto settled =
      harness.commit({job_bytes("z", {26}), "not-json", job_bytes("m", {2}), job_bytes("a", {1, 0}),
                      job_bytes("z", {26}), job_bytes("m", {1}), job_bytes("b", {2, 0}), job_bytes("z", {5}), ""});
  CHECK(outcomes_of(settled) == Outcomes{Outcome::stored, Outcome::invalid, Outcome::conflict, Outcome::stored,
                                         Outcome::duplicate, Outcome::duplicate, Outcome::stored, Outcome::conflict,
                                         Outcome::invalid});
  CHECK(settled[0].result == integer_result(26));
  CHECK(settled[3].result == integer_result(1));
  CHECK(settled[4].result == integer_result(26));
  CHECK(settled[5].result == integer_result(1));
  CHECK(settled[6].result == integer_result(2));
  CHECK(harness.counts().results == 4);
  CHECK(harness.counts().dead_letters == 4);
  CHECK(harness.row("a")->result == integer_result(1));
  CHECK(harness.row("z")->result == integer_result(26));
}

TEST_CASE("a present key is answered before type and schema are looked at") {
  StoreHarness harness;
  CHECK(harness.handlers.add_inline("gone", [](const HandlerCall &) { return Done{integer_result(7)}; }).has_value());
  harness.open();
  const Bytes job = job_bytes({.operation_id = "demo-1", .numbers = {1}, .type = "gone"});
  CHECK(harness.commit_one(job).outcome == Outcome::stored);

  harness.handlers = built_in_handlers(); // a program that no longer knows the type
  const auto again = harness.commit_one(job);
  CHECK(again.outcome == Outcome::duplicate);
  CHECK(again.result == integer_result(7));
  CHECK(harness.commit_one(job_bytes({.operation_id = "demo-1", .numbers = {2}, .type = "gone"})).outcome ==
        Outcome::conflict);
  CHECK(harness.commit_one(job_bytes({.operation_id = "demo-2", .numbers = {1}, .type = "gone"})).outcome ==
        Outcome::invalid);
}

TEST_CASE("one id under two types is two keys and two ids under one effect key are one") {
  StoreHarness harness;
  CHECK(harness.handlers.add_inline("other", [](const HandlerCall &) { return Done{integer_result(7)}; }).has_value());
  harness.open();
  const auto settled = harness.commit({job_bytes({.operation_id = "x", .numbers = {1}}),
                                       job_bytes({.operation_id = "x", .numbers = {1}, .type = "other"}),
                                       job_bytes({.operation_id = "x", .numbers = {1}, .effect_key = "e"}),
                                       job_bytes({.operation_id = "y", .numbers = {1}, .effect_key = "e"}),
                                       job_bytes({.operation_id = "z", .numbers = {2}, .effect_key = "e"}),
                                       job_bytes({.operation_id = "x", .numbers = {1}, .effect_key = "f"})});
  CHECK(outcomes_of(settled) == Outcomes{Outcome::stored, Outcome::stored, Outcome::stored, Outcome::duplicate,
                                         Outcome::conflict, Outcome::stored});
  CHECK(harness.counts().results == 4);
  const auto row = harness.store->get(key_of_effect("e"));
  REQUIRE(row.has_value());
  REQUIRE(row->has_value());
  CHECK((*row)->operation_id == "x");
  CHECK((*row)->effect_key == "e");
}

TEST_CASE("an inline failure does not claim its key") {
  StoreHarness harness;
  harness.open();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

  SUBCASE("in another batch") {
    const auto failed = harness.commit_one(job_bytes("demo-1", {most, 1}));
    CHECK(failed.outcome == Outcome::failed);
    CHECK(failed.result.empty());
    CHECK(!harness.row("demo-1"));
    const auto stored = harness.commit_one(job_bytes("demo-1", {most, 1, -1}));
    CHECK(stored.outcome == Outcome::stored);
    CHECK(stored.result == integer_result(most));
  }
  SUBCASE("in one batch") {
    const auto settled = harness.commit({job_bytes("demo-1", {most, 1}), job_bytes("demo-1", {1, 2})});
    CHECK(outcomes_of(settled) == Outcomes{Outcome::failed, Outcome::stored});
    CHECK(settled[1].result == integer_result(3));
  }
  SUBCASE("after the good payload it is a conflict like any other payload") {
    const auto settled = harness.commit({job_bytes("demo-1", {1, 2}), job_bytes("demo-1", {most, 1})});
    CHECK(outcomes_of(settled) == Outcomes{Outcome::stored, Outcome::conflict});
  }
  CHECK(harness.counts().results == 1);
  CHECK(harness.counts().dead_letters == 1);
}

TEST_CASE("the durability mode is recorded in each row") {
  StoreHarness harness;
  harness.options.durability = Durability::page_cache;
  CHECK(harness.open().durability() == Durability::page_cache);
  CHECK(harness.commit_one(job_bytes("lazy", {1})).outcome == Outcome::stored);
  CHECK(harness.row("lazy")->durability == Durability::page_cache);
  harness.options.durability = Durability::fsync;
  CHECK(harness.reopen().durability() == Durability::fsync);
  CHECK(harness.commit_one(job_bytes("safe", {1})).outcome == Outcome::stored);
  CHECK(harness.row("lazy")->durability == Durability::page_cache);
  CHECK(harness.row("safe")->durability == Durability::fsync);
}

TEST_CASE("ids of every separator and of 255 bytes keep their own rows") {
  StoreHarness harness;
  harness.open();
  std::vector<Bytes> jobs;
  const std::vector<std::string> ids{"a",
                                     "A",
                                     "a/b",
                                     "a:b",
                                     std::string("a\0b", 3),
                                     "a\n",
                                     "é",
                                     "e\xCC\x81",
                                     std::string(255, 'x'),
                                     std::string(254, 'x')};
  for (std::size_t at = 0; at < ids.size(); ++at)
    jobs.push_back(job_bytes(ids[at], {static_cast<std::int64_t>(at)}));
  for (const auto &settlement : harness.commit(jobs))
    CHECK(settlement.outcome == Outcome::stored);
  for (std::size_t at = 0; at < ids.size(); ++at)
    CHECK(harness.row(ids[at])->result == integer_result(static_cast<std::int64_t>(at)));
  CHECK(harness.counts().results == ids.size());
}

TEST_CASE("a damaged row answers busy for its own deliveries alone") {
  StoreHarness harness;
  harness.open();
  CHECK(harness.commit_one(job_bytes("broken", {1})).outcome == Outcome::stored);
  harness.close();
  const Key key = key_of_operation("sum", "broken");
  RawDatabase(harness.directory.path()).put("operations", key.bytes, "garbage");

  harness.open();
  const auto settled = harness.commit({job_bytes("before", {1}), job_bytes("broken", {1}), job_bytes("zz", {2})});
  CHECK(outcomes_of(settled) == Outcomes{Outcome::stored, Outcome::busy, Outcome::stored});
  CHECK(!settled[1].detail.empty());
  const auto row = harness.store->get(key);
  REQUIRE(!row.has_value());
  CHECK(row.error().code == ErrorCode::corrupt);
  const auto counted = harness.store->count();
  REQUIRE(!counted.has_value());
  CHECK(counted.error().code == ErrorCode::corrupt);
}
