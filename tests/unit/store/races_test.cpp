// Many threads on one store: one effect a key, and counters that agree with the rows.
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "store/rows/records.hpp"
#include "support/raw_sums.hpp"
#include "support/seeds.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

void in_threads(unsigned count, const std::function<void(unsigned)> &work) {
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < count; ++number)
    threads.emplace_back(work, number);
  for (std::thread &thread : threads)
    thread.join();
}

// What the threads were told about one key.
struct KeyTally {
  std::atomic<unsigned> stored{0};
  std::atomic<unsigned> duplicates{0};
  std::atomic<unsigned> others{0};
  std::atomic<unsigned> wrong_results{0};
};

// Lets threads go on together once all have come.
class Gate {
public:
  explicit Gate(unsigned expected) : expected_(expected) {}
  // False after ten seconds without the others.
  bool pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    all_.notify_all();
    return all_.wait_for(lock, std::chrono::seconds(10), [&] { return arrived_ >= expected_; });
  }

private:
  unsigned expected_;
  unsigned arrived_ = 0;
  std::mutex mutex_;
  std::condition_variable all_;
};

} // namespace

TEST_CASE("eight threads with a thousand batches each on few keys store each key once") {
  constexpr unsigned threads = 8;
  constexpr unsigned rounds = 1'000;
  constexpr unsigned keys = 500;
  const Seed seed = drawn_seed();
  CAPTURE(seed);
  StoreHarness harness;
  harness.open();
  std::vector<KeyTally> tallies(keys);
  std::atomic<unsigned> errors{0};
  in_threads(threads, [&](unsigned number) {
    std::mt19937_64 random(seed.number + number);
    for (unsigned round = 0; round < rounds; ++round) {
      Batch batch;
      std::vector<unsigned> picked;
      for (unsigned at = 0; at < 4; ++at) {
        // Moves on with the rounds, so that every part of the run has keys that nobody has stored.
        picked.push_back(std::min(keys - 1, round * keys / rounds + static_cast<unsigned>(random() % 5)));
        batch.add(job_bytes("key-" + std::to_string(picked.back()), {picked.back(), 1}));
      }
      const auto settled = harness.store->commit(batch.view(), harness.handlers);
      if (!settled) {
        ++errors;
        continue;
      }
      for (std::size_t at = 0; at < picked.size(); ++at) {
        KeyTally &tally = tallies[picked[at]];
        const Settlement &one = (*settled)[at];
        ++(one.outcome == Outcome::stored      ? tally.stored
           : one.outcome == Outcome::duplicate ? tally.duplicates
                                               : tally.others);
        if (one.result != integer_result(picked[at] + 1)) ++tally.wrong_results;
      }
    }
  });
  CHECK(errors == 0);
  unsigned distinct = 0;
  unsigned answers = 0;
  for (unsigned key = 0; key < keys; ++key) {
    const KeyTally &tally = tallies[key];
    CAPTURE(key);
    const unsigned answered = tally.stored + tally.duplicates + tally.others;
    answers += answered;
    if (answered == 0) continue;
    ++distinct;
    CHECK(tally.stored == 1);
    CHECK(tally.others == 0);
    CHECK(tally.wrong_results == 0);
  }
  CHECK(answers == threads * rounds * 4);
  CHECK(distinct > keys / 2);
  CHECK(harness.counts().results == distinct);
  CHECK(harness.counts().dead_letters == 0);

  harness.close();
  const RawDatabase raw(harness.directory.path());
  CHECK(sums_of(raw)[engine::Counter::results] == distinct);
  CHECK(sums_of(raw)[engine::Counter::dead_letters] == 0);
  CHECK(raw.rows("meta").contains("sums/1")); // threads do not wait for one another's sums
}

TEST_CASE("a handler that runs twice for one job at once has one effect") {
  StoreHarness harness;
  Gate gate(2);
  std::atomic<std::int64_t> runs{0};
  const auto handler = [&](const HandlerCall &) -> HandlerResult {
    const std::int64_t run = ++runs;
    if (run <= 2 && !gate.pass()) return Failed{"the other thread did not come"};
    return Done{integer_result(run)}; // impure on purpose, to tell the runs apart
  };
  CHECK(harness.handlers.add_inline("slow", handler).has_value());
  harness.open();
  std::array<Settlement, 2> settled;
  in_threads(2, [&](unsigned number) {
    const Batch batch({job_bytes({.operation_id = "demo-1", .numbers = {1}, .type = "slow"})});
    auto answer = harness.store->commit(batch.view(), harness.handlers);
    if (answer) settled.at(number) = std::move(answer->at(0));
  });
  CHECK(runs == 2); // both looked the key up before either had committed
  const bool first_won = settled[0].outcome == Outcome::stored;
  CHECK(settled[first_won ? 0 : 1].outcome == Outcome::stored);
  CHECK(settled[first_won ? 1 : 0].outcome == Outcome::duplicate);
  CHECK(settled[0].result == settled[1].result);
  const auto row = harness.row("demo-1", "slow");
  REQUIRE(row);
  CHECK(row->result == settled[0].result);
  CHECK(harness.counts().results == 1);
}

TEST_CASE("of two different payloads at once one is stored and the other a conflict with its digest") {
  StoreHarness harness;
  Gate gate(2);
  std::atomic<int> runs{0};
  const auto handler = [&](const HandlerCall &) -> HandlerResult {
    if (++runs <= 2 && !gate.pass()) return Failed{"the other thread did not come"};
    return Done{integer_result(5)};
  };
  CHECK(harness.handlers.add_inline("slow", handler).has_value());
  harness.open();
  std::array<Settlement, 2> settled;
  std::array<Digest, 2> digests;
  in_threads(2, [&](unsigned number) {
    // A neighbour in each batch is stored whatever becomes of the contested key.
    const Batch batch({job_bytes({.operation_id = "demo-1", .numbers = {number}, .type = "slow"}),
                       job_bytes("neighbour-" + std::to_string(number), {number})});
    digests.at(number) = batch.view()[0].digest;
    auto answer = harness.store->commit(batch.view(), harness.handlers);
    if (answer && answer->at(1).outcome == Outcome::stored) settled.at(number) = std::move(answer->at(0));
  });
  CHECK(runs == 2);
  const unsigned winner = settled[0].outcome == Outcome::stored ? 0 : 1;
  CHECK(settled.at(winner).outcome == Outcome::stored);
  CHECK(settled.at(1 - winner).outcome == Outcome::conflict);
  CHECK(harness.row("demo-1", "slow")->digest == digests.at(winner));
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].stored_digest == digests.at(winner));
  CHECK(letters[0].offered_digest == digests.at(1 - winner));
  CHECK(harness.counts().results == 3);
}

TEST_CASE("the counters of all lanes add up to the rows after every opening") {
  const Seed seed = drawn_seed();
  CAPTURE(seed);
  StoreHarness harness;
  for (unsigned opening = 0; opening < 3; ++opening) {
    harness.open();
    in_threads(opening == 1 ? 1 : 4, [&](unsigned number) {
      std::mt19937_64 random(seed.number + opening * 16 + number);
      for (unsigned round = 0; round < 60; ++round) {
        Batch batch;
        for (unsigned at = 0; at < 8; ++at) {
          const auto key = static_cast<std::int64_t>(random() % 300);
          switch (random() % 4) {
          case 0:
            batch.add("bad " + std::to_string(key % 40));
            break;
          case 1:
            batch.add(job_bytes("key-" + std::to_string(key), {key, 1}));
            break;
          default:
            batch.add(job_bytes("key-" + std::to_string(key), {key}));
          }
        }
        (void)harness.store->commit(batch.view(), harness.handlers);
      }
    });
    const Counts counts = harness.counts();
    harness.close();
    const RawDatabase raw(harness.directory.path());
    CHECK(sums_of(raw)[engine::Counter::results] == static_cast<std::int64_t>(counts.results));
    CHECK(sums_of(raw)[engine::Counter::dead_letters] == static_cast<std::int64_t>(counts.dead_letters));
    CHECK(counts.results > 0);
    CHECK(counts.dead_letters > 0);
  }
}
