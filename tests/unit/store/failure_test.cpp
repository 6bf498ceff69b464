// A file system that fails under the store: nothing is acknowledged after it, and an opening finds out what was
// written.
#include <doctest/doctest.h>

#include <thread>

#include "support/faulty_environment.hpp"
#include "support/raw_database.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

struct FaultyHarness : StoreHarness {
  FaultyHarness() { options.environment = faulty_environment(faults); }
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();

  [[nodiscard]] Result<std::vector<Settlement>> try_commit(Bytes job) {
    const Batch batch({std::move(job)});
    return store->commit(batch.view(), handlers);
  }
};

void check_unavailable(FaultyHarness &harness, const Bytes &job) {
  const auto settled = harness.try_commit(job);
  REQUIRE(!settled.has_value());
  CAPTURE(describe(settled.error()));
  CHECK(settled.error().code == ErrorCode::store_unavailable);
}

} // namespace

TEST_CASE("a commit syncs the log once") {
  FaultyHarness harness;
  harness.open();
  const std::uint64_t before = harness.faults->calls(FaultAt::log_sync);
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  CHECK(harness.faults->calls(FaultAt::log_sync) == before + 1);
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::duplicate);
  CHECK(harness.faults->calls(FaultAt::log_sync) == before + 1);

  harness.options.durability = Durability::page_cache;
  harness.reopen();
  const std::uint64_t opened = harness.faults->calls(FaultAt::log_sync);
  CHECK(harness.commit_one(job_bytes("demo-2", {1})).outcome == Outcome::stored);
  CHECK(harness.faults->calls(FaultAt::log_sync) == opened);
}

// A commit that failed may have been written, whatever the library says of it: only a new opening finds that out.
TEST_CASE("a failed commit makes the store unavailable, whatever the error says") {
  for (const FaultKind kind : {FaultKind::io_error, FaultKind::try_again, FaultKind::corruption}) {
    CAPTURE(static_cast<int>(kind));
    FaultyHarness harness;
    harness.open();
    CHECK(harness.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
    harness.faults->speak(kind);
    harness.faults->fail_from(FaultAt::log_append, 1);
    check_unavailable(harness, job_bytes("job", {1}));
    harness.faults->clear();
    check_unavailable(harness, job_bytes("before", {1}));
  }
}

TEST_CASE("after a failed write nothing is acknowledged until the store is opened again") {
  for (const FaultAt at : {FaultAt::log_sync, FaultAt::log_append}) {
    for (const std::uint64_t nth : {1U, 3U}) {
      CAPTURE(static_cast<int>(at));
      CAPTURE(nth);
      FaultyHarness harness;
      harness.open();
      CHECK(harness.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
      harness.faults->fail_from(at, nth);
      std::vector<Bytes> acknowledged;
      Bytes unknown;
      for (unsigned number = 0; number < 10 && unknown.empty(); ++number) {
        const Bytes job = job_bytes("job-" + std::to_string(number), {number});
        (harness.try_commit(job) ? acknowledged.emplace_back() : unknown) = job;
      }
      REQUIRE(!unknown.empty());
      CHECK(harness.faults->failures() > 0);
      harness.faults->clear(); // the disk is well again, but this store has seen it fail
      check_unavailable(harness, unknown);
      check_unavailable(harness, job_bytes("other", {1}));
      check_unavailable(harness, job_bytes("before", {1}));

      harness.reopen();
      const bool written = harness.counts().results == acknowledged.size() + 2;
      CHECK((written || harness.counts().results == acknowledged.size() + 1));
      for (const Bytes &job : acknowledged)
        CHECK(harness.commit_one(job).outcome == Outcome::duplicate);
      CHECK(harness.commit_one(unknown).outcome == (written ? Outcome::duplicate : Outcome::stored));
      CHECK(harness.commit_one(unknown).outcome == Outcome::duplicate);
      CHECK(harness.counts().results == acknowledged.size() + 2);
    }
  }
}

TEST_CASE("a failed sync under several threads acknowledges nothing that is not there afterwards") {
  FaultyHarness harness;
  harness.open();
  harness.faults->fail_from(FaultAt::log_sync, 40);
  std::vector<std::vector<std::string>> acknowledged(4);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (unsigned round = 0; round < 1'000; ++round) {
        const std::string id = std::to_string(number) + "/" + std::to_string(round);
        if (!harness.try_commit(job_bytes(id, {round}))) return;
        acknowledged[number].push_back(id);
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  harness.faults->clear();
  harness.reopen();
  std::size_t count = 0;
  for (const auto &ids : acknowledged) {
    CHECK(ids.size() < 1'000);
    count += ids.size();
    for (const std::string &id : ids)
      CHECK(harness.row(id).has_value());
  }
  CHECK(count >= 39);
  CHECK(harness.counts().results >= count);
  CHECK(harness.counts().results <= count + 4);
}

TEST_CASE("an error in the background makes commits fail") {
  FaultyHarness harness;
  const Bytes big(60'000, 'x');
  CHECK(harness.handlers
            .add_inline("big",
                        [&](const HandlerCall &) {
                          Done done;
                          messagepack::Writer(done.result).binary(big);
                          return done;
                        })
            .has_value());
  harness.open();
  harness.faults->fail_from(FaultAt::table_append, 1);
  // Results fill the memtable; writing it out fails.
  unsigned stored = 0;
  std::optional<Error> error;
  for (unsigned number = 0; number < 2'000 && !error; ++number) {
    const auto settled = harness.try_commit(
        job_bytes({.operation_id = "job-" + std::to_string(number), .numbers = {number}, .type = "big"}));
    settled ? static_cast<void>(++stored) : static_cast<void>(error = settled.error());
  }
  REQUIRE(error);
  CHECK(error->code == ErrorCode::store_unavailable);
  CHECK(harness.faults->failures() > 0);
  harness.faults->clear();
  check_unavailable(harness, job_bytes("small", {1}));

  harness.reopen();
  CHECK(harness.counts().results >= stored);
  CHECK(harness.counts().results <= stored + 1);
  CHECK(harness.commit_one(job_bytes("small", {1})).outcome == Outcome::stored);
}

TEST_CASE("an opening puts what it recovers on stable storage before anything is acknowledged") {
  FaultyHarness harness;
  harness.options.durability = Durability::page_cache;
  harness.open();
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  harness.close();
  const std::uint64_t before = harness.faults->calls(FaultAt::table_sync);
  harness.open();
  CHECK(harness.faults->calls(FaultAt::table_sync) > before);
  harness.close();
  harness.faults->fail_from(FaultAt::table_sync, 1);
  CHECK(!harness.try_open().has_value());
}

TEST_CASE("an opening that cannot write is refused and can be tried again") {
  FaultyHarness harness;
  harness.open();
  CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  harness.close();
  for (const FaultAt at : {FaultAt::log_append, FaultAt::log_sync, FaultAt::table_append, FaultAt::table_sync}) {
    CAPTURE(static_cast<int>(at));
    harness.faults->fail_from(at, 1);
    const auto refused = harness.try_open();
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::store_unavailable);
    harness.faults->clear();
    harness.open();
    CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::duplicate);
    harness.close();
  }
}

TEST_CASE("a commit that failed leaves no more dead letters counted than there are") {
  FaultyHarness harness;
  harness.options.dead_letters_max = 2;
  harness.open();
  CHECK(harness.commit_one("bad 1").outcome == Outcome::invalid);
  harness.faults->fail_from(FaultAt::log_append, 1);
  CHECK(!harness.try_commit("bad 2").has_value());
  harness.faults->clear();
  harness.reopen();
  const std::uint64_t known = harness.counts().dead_letters; // 1, or 2 where the failed write was there after all
  CHECK(known >= 1);
  CHECK(harness.commit_one("bad 2").outcome == Outcome::invalid);
  CHECK(harness.counts().dead_letters == 2);
  CHECK(harness.commit_one("bad 3").outcome == Outcome::busy);
}
