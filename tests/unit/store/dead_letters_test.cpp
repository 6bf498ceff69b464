// What becomes of jobs that have no success: one row each, however often and from wherever they come.
#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "store/rows/records.hpp"
#include "support/raw_database.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// One job of each reason for which the inline store buries.
struct BadJob {
  const char *what;
  Outcome reason;
  Bytes bytes;
};

std::vector<BadJob> bad_jobs() {
  return {{"no job at all", Outcome::invalid, "not-json"},
          {"an unknown type", Outcome::invalid, job_bytes({.operation_id = "u", .numbers = {1}, .type = "unheard-of"})},
          {"an overflow", Outcome::failed, job_bytes("o", {most, 1})},
          {"a conflict", Outcome::conflict, job_bytes("demo-1", {9})}};
}

} // namespace

TEST_CASE("bytes that are no job become a dead letter that holds them") {
  StoreHarness harness;
  harness.open();
  Batch batch;
  Delivery &delivery = batch.add("not-json");
  delivery.sequence = Sequence{77};
  const auto settlement = harness.commit(batch).at(0);
  CHECK(settlement.outcome == Outcome::invalid);
  CHECK(settlement.detail == batch.view()[0].defect);

  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  const DeadLetter &letter = letters[0];
  Digester digester;
  CHECK(letter.id == store::dead_letter_id("not-json", digester));
  CHECK(letter.reason == Outcome::invalid);
  CHECK(letter.detail == settlement.detail);
  CHECK(letter.bytes == "not-json");
  CHECK(letter.operation_id.empty());
  CHECK(letter.type.empty());
  CHECK(letter.effect_key.empty());
  CHECK(letter.sender == batch.view()[0].sender);
  CHECK(letter.sequence == Sequence{77});
  CHECK(letter.issued_at == batch.view()[0].issued_at);
  CHECK(letter.deliveries == 1);
  CHECK(letter.receives == 0);
  CHECK(letter.redrives == 0);
  CHECK(letter.first_at == harness.clock.now);
  CHECK(letter.last_at == harness.clock.now);
  CHECK(!letter.stored_digest);
  CHECK(!letter.offered_digest);
}

TEST_CASE("a job that its handler refuses becomes a dead letter with its ids and digest") {
  StoreHarness harness;
  harness.open();
  const Bytes overflow = job_bytes({.operation_id = "demo-1", .numbers = {most, 1}, .effect_key = "invoice-7"});
  const auto settlement = harness.commit_one(overflow);
  CHECK(settlement.outcome == Outcome::failed);
  CHECK(settlement.detail.find("overflow") != std::string::npos);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Outcome::failed);
  CHECK(letters[0].bytes == overflow);
  CHECK(letters[0].operation_id == "demo-1");
  CHECK(letters[0].type == "sum");
  CHECK(letters[0].effect_key == "invoice-7");
  CHECK(letters[0].offered_digest == Batch({overflow}).view()[0].digest);
  CHECK(!letters[0].stored_digest);
}

TEST_CASE("the same bad delivery ten times is one row with a count of ten") {
  for (const BadJob &bad : bad_jobs()) {
    CAPTURE(bad.what);
    StoreHarness harness;
    harness.open();
    CHECK(harness.commit_one(job_bytes("demo-1", {1, 2, 3})).outcome == Outcome::stored);
    const WallTime first_at = harness.clock.now;

    SUBCASE("in one batch") {
      for (const auto &settlement : harness.commit(std::vector<Bytes>(10, bad.bytes)))
        CHECK(settlement.outcome == bad.reason);
    }
    SUBCASE("in two batches of five") {
      for (int round = 0; round < 2; ++round)
        CHECK(harness.commit(std::vector<Bytes>(5, bad.bytes)).size() == 5);
    }
    SUBCASE("in ten batches") {
      for (int round = 0; round < 10; ++round) {
        CHECK(harness.commit_one(bad.bytes).outcome == bad.reason);
        harness.clock.now += std::chrono::seconds(1);
      }
      CHECK(harness.dead_letters().at(0).last_at == first_at + std::chrono::seconds(9));
    }
    SUBCASE("with reopenings between") {
      for (int round = 0; round < 5; ++round) {
        CHECK(harness.commit_one(bad.bytes).outcome == bad.reason);
        CHECK(harness.commit_one(bad.bytes).outcome == bad.reason);
        harness.reopen();
      }
    }
    SUBCASE("from four threads") {
      std::vector<std::thread> threads;
      std::atomic<int> answered{0};
      for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, rounds = thread < 2 ? 3 : 2] {
          for (int round = 0; round < rounds; ++round) {
            const Batch batch({bad.bytes});
            const auto settled = harness.store->commit(batch.view(), harness.handlers);
            if (settled && settled->at(0).outcome == bad.reason) ++answered;
          }
        });
      }
      for (std::thread &thread : threads)
        thread.join();
      CHECK(answered == 10);
    }
    const auto letters = harness.dead_letters();
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].deliveries == 10);
    CHECK(letters[0].first_at == first_at);
    CHECK(letters[0].reason == bad.reason);
    CHECK(letters[0].bytes == bad.bytes);
  }
}

TEST_CASE("at the cap a delivery that would add a dead letter is busy and nothing of it is written") {
  StoreHarness harness;
  harness.options.dead_letters_max = 2;
  harness.open();
  CHECK(harness.commit_one("bad 1").outcome == Outcome::invalid);
  CHECK(harness.commit_one("bad 2").outcome == Outcome::invalid);
  harness.close();
  const std::uint64_t before = RawDatabase(harness.directory.path()).last_sequence();

  harness.open();
  const auto full = harness.commit_one("bad 3");
  CHECK(full.outcome == Outcome::busy);
  CHECK(!full.detail.empty());
  harness.close();
  CHECK(RawDatabase(harness.directory.path()).last_sequence() == before + 3); // the three rows of a boot

  harness.open();
  // The known ones are still counted and the good ones stored.
  const auto mixed = harness.commit({"bad 4", "bad 1", job_bytes("demo-1", {1}), "bad 4"});
  CHECK(outcomes_of(mixed) == std::vector<Outcome>{Outcome::busy, Outcome::invalid, Outcome::stored, Outcome::busy});
  CHECK(harness.counts().results == 1);
  CHECK(harness.counts().dead_letters == 2);
  CHECK(harness.store
            ->dead_letter([] {
              Digester digester;
              return store::dead_letter_id("bad 1", digester);
            }())
            ->value()
            .deliveries == 2);
}

TEST_CASE("refused dead letters are not counted as rows") {
  StoreHarness harness;
  harness.options.dead_letters_max = 3;
  harness.open();
  // Two of three fit.
  CHECK(harness.commit_one("bad 1").outcome == Outcome::invalid);
  const auto settled = harness.commit({"bad 2", "bad 3", "bad 4"});
  const auto busy = static_cast<std::size_t>(
      std::count_if(settled.begin(), settled.end(), [](const auto &one) { return one.outcome == Outcome::busy; }));
  CHECK(busy == 1);
  CHECK(harness.counts().dead_letters == 3);
  for (int round = 0; round < 5; ++round)
    CHECK(harness.commit_one("bad 5").outcome == Outcome::busy);
  // With one more place there is room for exactly one: the refusals are in no counters row.
  harness.options.dead_letters_max = 4;
  harness.reopen();
  CHECK(harness.commit_one("bad 5").outcome == Outcome::invalid);
  CHECK(harness.commit_one("bad 6").outcome == Outcome::busy);
}

TEST_CASE("the cap holds for threads that fill it together") {
  StoreHarness harness;
  harness.options.dead_letters_max = 50;
  harness.open();
  std::vector<std::thread> threads;
  std::atomic<int> buried{0};
  std::atomic<int> refused{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 20; ++round) {
        const Batch batch({"bad " + std::to_string(thread) + "/" + std::to_string(round)});
        const auto settled = harness.store->commit(batch.view(), harness.handlers);
        if (!settled) continue;
        buried += settled->at(0).outcome == Outcome::invalid ? 1 : 0;
        refused += settled->at(0).outcome == Outcome::busy ? 1 : 0;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(buried == 50);
  CHECK(refused == 30);
  CHECK(harness.counts().dead_letters == 50);
}

TEST_CASE("dead letters are listed page by page in the order of their ids") {
  StoreHarness harness;
  harness.open();
  std::vector<Bytes> bad;
  for (int number = 0; number < 25; ++number)
    bad.push_back("bad " + std::to_string(number));
  CHECK(harness.commit(bad).size() == 25);
  std::vector<DeadLetterId> seen;
  std::optional<DeadLetterId> after;
  for (;;) {
    const auto page = harness.store->dead_letters(10, after);
    REQUIRE(page.has_value());
    if (page->empty()) break;
    CHECK(page->size() <= 10);
    for (const DeadLetter &letter : *page)
      seen.push_back(letter.id);
    after = seen.back();
  }
  CHECK(seen.size() == 25);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  const auto one = harness.store->dead_letter(seen[3]);
  REQUIRE(one.has_value());
  REQUIRE(one->has_value());
  CHECK((*one)->id == seen[3]);
  const auto none = harness.store->dead_letter(DeadLetterId{});
  REQUIRE(none.has_value());
  CHECK(!none->has_value());
}

TEST_CASE("a damaged dead letter is reported when read and written anew by its next delivery") {
  StoreHarness harness;
  harness.open();
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
  const DeadLetterId id = harness.dead_letters().at(0).id;
  harness.close();
  RawDatabase(harness.directory.path()).put("dead_letters", id.view(), "garbage");
  harness.open();
  const auto damaged = harness.store->dead_letter(id);
  REQUIRE(!damaged.has_value());
  CHECK(damaged.error().code == ErrorCode::corrupt);
  const auto list = harness.store->dead_letters(10, std::nullopt);
  REQUIRE(!list.has_value());
  CHECK(list.error().code == ErrorCode::corrupt);
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
  CHECK(harness.dead_letters().at(0).bytes == "not-json");
}

TEST_CASE("a page of large dead letters ends by its bytes and the pages together hold each once") {
  StoreHarness harness;
  harness.options.dead_letter_bytes_a_second = limits::dead_letter_bytes_a_second_max;
  harness.reopen();
  constexpr std::size_t large = 1'000'000;
  constexpr std::size_t letters = 2 * limits::dead_letters_scanned_bytes_max / large;
  for (std::size_t number = 0; number < letters; ++number)
    REQUIRE(harness.commit_one(std::to_string(number) + Bytes(large, 'x')).outcome == Outcome::invalid);
  std::set<std::string> seen;
  std::size_t pages = 0;
  for (std::optional<DeadLetterId> after;; ++pages) {
    const auto page = harness.store->dead_letters(letters, after);
    REQUIRE(page.has_value());
    if (page->empty()) break;
    CHECK(page->size() <= limits::dead_letters_scanned_bytes_max / large + 1);
    for (const DeadLetter &letter : *page)
      CHECK(seen.insert(to_hex(letter.id.view())).second);
    after = page->back().id;
  }
  CHECK(seen.size() == letters);
  CHECK(pages >= 2);
}
