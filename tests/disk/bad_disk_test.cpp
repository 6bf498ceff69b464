// Verifies a disk that fails at every step of I/O: with EIO (once or from then on, by step and seed; a failed sync
// keeps or loses its bytes), with ENOSPC from then on, and with a part of an append written. A store or an outbox
// says so, once and for all until it is opened again; opened on a disk that is well it has what it acknowledged,
// and what it had been asked whole or not at all. An opening that fails harms nothing.
// Does not verify failures of reads, nor of the writes of durable.mark, which may be lost.
// ONCED_DISK_SEEDS=K tries each step with K seeds, ONCED_DISK_STEP=N step N only.
#include <doctest/doctest.h>

#include "disk/campaign.hpp"
#include "disk/workloads.hpp"

using namespace onced::testing;

namespace {

std::vector<TrialOptions> failures(std::uint64_t step, std::uint64_t seed, StepKind kind) {
  std::vector<TrialOptions> failures{{.plan = {.trouble = Trouble::io_error, .lasting = (step + seed) % 2 == 0}}};
  // The two ways to fail an append take turns; with two seeds every one meets both.
  if (kind == StepKind::append && (step + seed) % 2 == 0) {
    failures.push_back({.plan = {.trouble = Trouble::short_write}});
  } else if (kind == StepKind::append || kind == StepKind::create) {
    failures.push_back({.plan = {.trouble = Trouble::disk_full, .lasting = true}});
  }
  return failures;
}

} // namespace

TEST_CASE("a store on a disk that fails at any step acknowledges nothing that is not there") {
  const Tally tally = campaign(store_workload(), failures);
  MESSAGE("store: " << tally.describe());
  CHECK(tally.lost == 0);
}

TEST_CASE("an outbox on a disk that fails at any step acknowledges nothing that is not there") {
  const Tally tally = campaign(outbox_workload(), failures);
  MESSAGE("outbox: " << tally.describe());
  CHECK(tally.lost == 0);
}
