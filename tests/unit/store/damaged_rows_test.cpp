// A row that cannot be read: what needs it says so, and everything else goes on. The store is not given up, since
// another opening would find the same row. Over the engine in memory, which damages one row; what RocksDB makes of a
// damaged block is in tests/damage.
#include <doctest/doctest.h>

#include "store/opening.hpp"
#include "support/memory_engine.hpp"
#include "support/relay_harness.hpp"

using namespace onced;
using namespace onced::testing;
using engine::Family;
using store::RelayBuried;

namespace {

struct DamagedHarness : RelayHarness {
  DamagedHarness() {
    close();
    auto opened = store::open_over(disk->open(), options, clock, random);
    REQUIRE(opened.has_value());
    store = std::move(*opened);
  }
  ~DamagedHarness() { close(); }

  std::shared_ptr<MemoryDisk> disk = MemoryDisk::make();
};

} // namespace

TEST_CASE("a damaged dead letter does not make the store fail when the bad job comes again") {
  DamagedHarness harness;
  CHECK(harness.commit_one("no job").outcome == Outcome::invalid);
  harness.disk->damage(Family::dead_letters, harness.dead_letters().at(0).id.view());
  CHECK(!harness.store->dead_letters(10, std::nullopt).has_value());
  CHECK(harness.commit_one("no job").outcome == Outcome::invalid); // put anew: its delivery is in hand
  CHECK(harness.dead_letters().at(0).deliveries == 1);
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}

TEST_CASE("a damaged message does not make the store fail when it leaves the relay") {
  DamagedHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const Bytes key = harness.waiting().at(0).key;
  harness.disk->damage(Family::relay, key);
  CHECK(harness.bury(key, Outcome::conflict, "taken") == RelayBuried::gone);
  harness.remove({key});
  CHECK(harness.waiting().empty());
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}

TEST_CASE("a damaged queued job does not make the store fail when it is taken") {
  DamagedHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  harness.disk->damage(Family::queue, key_of("a"));
  CHECK(harness.receive("a").answer == store::Received::Answer::busy);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}

TEST_CASE("a damaged row of a key makes its job busy and nothing else") {
  DamagedHarness harness;
  CHECK(harness.commit_one(job_bytes("a", {1})).outcome == Outcome::stored);
  harness.options.committed_cache_bytes = 0;
  harness.close();
  harness.store = std::move(*store::open_over(harness.disk->open(), harness.options, harness.clock, harness.random));
  harness.disk->damage(Family::operations, key_of_operation("sum", "a").bytes);
  CHECK(harness.commit_one(job_bytes("a", {1})).outcome == Outcome::busy);
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}
