// Many threads on the queued jobs of one store: one lease, one end and one effect a job, caps that hold, and everything
// fits together afterwards. Not here: one thread's rules (queue_test.cpp).
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "support/queue_harness.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

// Lets two threads work on each of so many jobs at the same time, in step: both have left a job before either begins
// the next.
template <class Work> void race(unsigned jobs, Work &&work) {
  std::array<std::atomic<unsigned>, 2> arrived{};
  std::vector<std::thread> threads;
  for (unsigned side = 0; side < 2; ++side) {
    threads.emplace_back([&, side] {
      for (unsigned job = 0; job < jobs; ++job) {
        arrived.at(side) = job + 1;
        while (arrived.at(1 - side) < job + 1)
          std::this_thread::yield();
        work(side, job);
      }
      arrived.at(side) = jobs + 1;
    });
  }
  for (std::thread &thread : threads)
    thread.join();
}

std::string name_of_job(unsigned job) {
  return "job-" + std::to_string(job);
}

void accept_jobs(QueueHarness &harness, unsigned jobs) {
  Batch batch;
  for (unsigned job = 0; job < jobs; ++job)
    batch.add(slow_job(name_of_job(job)));
  for (const Settlement &settlement : harness.commit(batch))
    REQUIRE(settlement.outcome == Outcome::accepted);
}

} // namespace

TEST_CASE("of two leases at once the greater token has the job and every hand-over is counted") {
  constexpr unsigned jobs = 100;
  QueueHarness harness;
  accept_jobs(harness, jobs);
  const std::uint64_t boot = harness.boot_count();
  std::array<std::vector<Received::Answer>, 2> answers;
  for (auto &side : answers)
    side.resize(jobs, Received::Answer::busy);
  race(jobs, [&](unsigned side, unsigned job) {
    const FencingToken token{.boot = boot, .count = 2 * job + side + 1};
    const auto received = harness.store->queue().begin_receive(key_of(name_of_job(job)), token, {.type = "slow"});
    if (received) answers.at(side).at(job) = received->answer;
  });
  for (unsigned job = 0; job < jobs; ++job) {
    CAPTURE(job);
    CHECK(answers[1][job] == Received::Answer::job);
    const bool both = answers[0][job] == Received::Answer::job;
    if (!both) CHECK(answers[0][job] == Received::Answer::stale);
    const QueueRow row = harness.queued(key_of(name_of_job(job)));
    CHECK(row.token == FencingToken{.boot = boot, .count = 2 * job + 2});
    CHECK(row.receives == (both ? 2U : 1U));
  }
  harness.check_sound();
}

TEST_CASE("of two settlements of one lease at once one counts") {
  constexpr unsigned jobs = 120;
  QueueHarness harness;
  accept_jobs(harness, jobs);
  std::vector<FencingToken> tokens;
  for (unsigned job = 0; job < jobs; ++job) {
    REQUIRE(harness.receive(name_of_job(job)).answer == Received::Answer::job);
    tokens.push_back(harness.token(name_of_job(job)));
  }
  std::array<std::vector<QueueSettled>, 2> settled;
  for (auto &side : settled)
    side.resize(jobs, QueueSettled::busy);
  race(jobs, [&](unsigned side, unsigned job) {
    QueueEnding ending = done(1);
    if (side == 1) ending = job % 3 == 0 ? done(2) : job % 3 == 1 ? refused("no") : try_again("no");
    const auto ended = harness.store->queue().settle(key_of(name_of_job(job)), tokens[job], ending);
    if (ended) settled.at(side).at(job) = *ended;
  });
  std::uint64_t committed = 0;
  std::uint64_t failed = 0;
  for (unsigned job = 0; job < jobs; ++job) {
    CAPTURE(job);
    const bool first = settled[0][job] != QueueSettled::stale;
    CHECK((settled[1][job] == QueueSettled::stale) == first);
    const QueueSettled winner = settled.at(first ? 0 : 1).at(job);
    if (winner == QueueSettled::committed) {
      ++committed;
      const auto row = harness.row(name_of_job(job), "slow").value();
      CHECK(row.result == integer_result(first ? 1 : 2));
    } else if (winner == QueueSettled::failed) {
      ++failed;
    } else {
      CHECK(winner == QueueSettled::waiting);
    }
  }
  CHECK(harness.counts().results == committed);
  CHECK(harness.counts().dead_letters == failed);
  CHECK(harness.counts().pending == jobs - committed - failed);
  harness.check_sound();
}

TEST_CASE("jobs that are delivered again and again while they are handled have one effect each") {
  constexpr unsigned jobs = 60;
  QueueHarness harness;
  // Each thread may have taken room for two jobs that another is about to queue, until it sees so.
  harness.options.queue_jobs_max = jobs + 6;
  harness.reopen();
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> finished{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      // Goes on until every job has ended, so that deliveries meet all phases.
      for (unsigned at = number; finished < jobs && wrong == 0; ++at) {
        const unsigned job = at % jobs;
        const Batch batch({slow_job(name_of_job(job)), slow_job(name_of_job((job + 1) % jobs))});
        const auto settled = harness.store->commit(batch.view(), harness.handlers);
        if (!settled) {
          ++wrong;
          return;
        }
        for (const Settlement &one : *settled) {
          if (one.outcome == Outcome::duplicate && one.result != integer_result(7)) ++wrong;
          if (one.outcome != Outcome::duplicate && one.outcome != Outcome::accepted) ++wrong;
        }
      }
    });
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  std::atomic<std::uint64_t> leases{0};
  const std::uint64_t boot = harness.boot_count();
  for (unsigned number = 0; number < 2; ++number) {
    threads.emplace_back([&] {
      while (finished < jobs && wrong == 0) {
        const auto page = harness.store->queue().queued({}, 8);
        if (!page || std::chrono::steady_clock::now() > deadline) {
          ++wrong;
          return;
        }
        for (const QueueEntry &entry : page->entries) {
          const FencingToken token{.boot = boot, .count = ++leases};
          const auto received = harness.store->queue().begin_receive(entry.key, token, {.type = "slow"});
          if (!received || received->answer != Received::Answer::job) continue;
          const auto settled = harness.store->queue().settle(entry.key, token, done(7));
          if (!settled) ++wrong;
          if (settled && *settled == QueueSettled::committed) ++finished;
        }
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(finished == jobs);
  CHECK(harness.counts().results == jobs);
  CHECK(harness.counts().pending == 0);
  harness.check_sound();
}

TEST_CASE(
    "failures and redrives and purges and deliveries of the same jobs at once leave everything fitting together") {
  constexpr unsigned jobs = 30;
  QueueHarness harness;
  accept_jobs(harness, jobs);
  std::atomic<unsigned> errors{0};
  std::atomic<std::uint64_t> leases{0};
  const std::uint64_t boot = harness.boot_count();
  const auto is_missed = [](const Error &error) { return error.code == ErrorCode::not_found; };
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (unsigned round = 0; round < 3 * jobs; ++round) {
      const Batch batch({slow_job(name_of_job(round % jobs)), slow_job(name_of_job(round % jobs), 2)});
      if (!harness.store->commit(batch.view(), harness.handlers)) ++errors;
    }
  });
  threads.emplace_back([&] {
    for (unsigned round = 0; round < 4 * jobs; ++round) {
      const Bytes key = key_of(name_of_job(round % jobs));
      const FencingToken token{.boot = boot, .count = ++leases};
      const auto received = harness.store->queue().begin_receive(key, token, {.type = "slow"});
      if (!received || !harness.store->queue().settle(key, token, refused("no"))) ++errors;
    }
  });
  for (const bool purges : {false, true}) {
    threads.emplace_back([&, purges] {
      for (unsigned round = 0; round < 40; ++round) {
        const auto letters = harness.store->dead_letters(3, std::nullopt);
        if (!letters) ++errors;
        for (const DeadLetter &letter : *letters) {
          if (purges) {
            const auto purged = harness.store->purge(letter.id, kim);
            if (!purged && !is_missed(purged.error())) ++errors;
          } else {
            const auto redriven = harness.store->redrive(letter.id, harness.handlers, kim);
            if (!redriven && !is_missed(redriven.error())) ++errors;
          }
        }
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(errors == 0);
  harness.check_sound();
  harness.reopen();
  harness.check_sound();
}

TEST_CASE("threads that fill the queue together stop at its cap") {
  QueueHarness harness;
  harness.options.queue_jobs_max = 25;
  harness.reopen();
  std::atomic<unsigned> accepted{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (unsigned round = 0; round < 20; ++round) {
        const Batch batch({slow_job(name_of_job(number * 20 + round)), job_bytes("inline", {1})});
        const auto settled = harness.store->commit(batch.view(), harness.handlers);
        if (settled && settled->at(0).outcome == Outcome::accepted) ++accepted;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(accepted == 25);
  CHECK(harness.counts().pending == 25);
  harness.check_sound();
}
