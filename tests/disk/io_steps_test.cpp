// Verifies that a process may die (SIGKILL) before every step of its I/O, and in the middle of every append: what
// a store or an outbox had acknowledged is there, exactly; what it had been asked is there whole, or not at all;
// and it goes on.
// Does not verify power cuts (power_loss_test.cpp): what was written outlives the process, synced or not. Nor
// deaths between two steps at which the memory of the process differs and the disk does not.
// ONCED_DISK_SEEDS=K tries each step with K seeds, ONCED_DISK_STEP=N step N only.
#include <doctest/doctest.h>

#include "disk/campaign.hpp"
#include "disk/workloads.hpp"

using namespace onced::testing;

namespace {

std::vector<TrialOptions> death(std::uint64_t, std::uint64_t, StepKind) {
  return {{.plan = {.trouble = Trouble::death}}};
}

} // namespace

TEST_CASE("a store whose process dies at any step has what it acknowledged and nothing by halves") {
  const Tally tally = campaign(store_workload(), death);
  MESSAGE("store: " << tally.describe());
  CHECK(tally.lost == 0);
}

TEST_CASE("an outbox whose process dies at any step has what it acknowledged and nothing by halves") {
  const Tally tally = campaign(outbox_workload(), death);
  MESSAGE("outbox: " << tally.describe());
  CHECK(tally.lost == 0);
}
