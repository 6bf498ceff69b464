// One block of a table that cannot be read: what needs its rows says so, and everything else goes on. The store is not
// given up, since another opening would find the same block.
#include <doctest/doctest.h>

#include "support/log_records.hpp"
#include "support/raw_database.hpp"
#include "support/relay_harness.hpp"

using namespace onced;
using namespace onced::testing;
using store::RelayBuried;

namespace {

// An opening writes the rows out to tables. Flips bits in the first block of the family's table.
void damage(RelayHarness &harness, const std::string &family) {
  harness.reopen();
  harness.close();
  const auto table = RawDatabase(harness.directory.path()).table_of(family);
  for (const std::size_t at : {8U, 16U, 24U, 32U})
    change_byte(table, at, 0x55);
  harness.open();
}

} // namespace

TEST_CASE("a damaged block of dead letters does not make the store fail when the bad job comes again") {
  RelayHarness harness;
  CHECK(harness.commit_one("no job").outcome == Outcome::invalid);
  damage(harness, "dead_letters");
  CHECK(!harness.store->dead_letters(10, std::nullopt).has_value());
  CHECK(harness.commit_one("no job").outcome == Outcome::invalid); // put anew: its delivery is in hand
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
  harness.reopen();
  CHECK(harness.commit_one("no job").outcome == Outcome::invalid);
}

TEST_CASE("a damaged block of the relay does not make the store fail when its messages leave") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const Bytes key = harness.waiting().at(0).key;
  damage(harness, "relay");
  CHECK(harness.bury(key, Outcome::conflict, "taken") == RelayBuried::gone);
  harness.remove({key});
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}

TEST_CASE("a damaged block of the queue does not make the store fail when its job is taken") {
  RelayHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  damage(harness, "queue");
  CHECK(harness.receive("a").answer == store::Received::Answer::busy);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.commit_one(job_bytes("good", {1})).outcome == Outcome::stored);
}
