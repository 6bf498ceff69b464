// Verifies that the power may fail before every step of I/O, and in the middle of every append: bytes, names and
// removals that were not synced are lost (none, some or all of them, by seed), and what was acknowledged is not.
// Also after a death and another opening. The same in page-cache mode loses what was acknowledged, or this test
// could not see a loss.
// Does not verify a real file system or disk: the model is POSIX's, in which a sync of a file makes no name
// durable. Unsynced bytes are lost from the end of a file, changes of names in one directory from the last
// backwards. Where a file system shows other bytes than were written, only this is verified: the opening refuses
// them as corrupt, or nothing is lost.
// ONCED_DISK_SEEDS=K tries each step with K seeds, ONCED_DISK_STEP=N step N only.
#include <doctest/doctest.h>

#include "disk/campaign.hpp"
#include "disk/workloads.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

constexpr std::uint64_t sampled = 4; // of so many steps one, where not each is looked at

std::vector<TrialOptions> cut(std::uint64_t, std::uint64_t, StepKind) {
  return {{.plan = {.trouble = Trouble::power_cut}}};
}

std::vector<TrialOptions> death_and_cut(std::uint64_t, std::uint64_t, StepKind kind) {
  if (kind != StepKind::sync) return {}; // what is written and not synced is all there
  return {{.plan = {.trouble = Trouble::death}, .second_life = true}};
}

std::vector<TrialOptions> cut_in_page_cache_mode(std::uint64_t step, std::uint64_t, StepKind) {
  if (step % sampled != 0) return {};
  return {{.plan = {.trouble = Trouble::power_cut}, .durability = Durability::page_cache, .may_lose = true}};
}

std::vector<TrialOptions> cut_with_garbage(std::uint64_t step, std::uint64_t, StepKind kind) {
  if (step % (2 * sampled) != 0 && kind != StepKind::sync) return {};
  return {{.plan = {.trouble = Trouble::power_cut, .garbage = true}}};
}

} // namespace

TEST_CASE("a store keeps what it acknowledged when the power fails at any step") {
  const Tally tally = campaign(store_workload(), cut);
  MESSAGE("store: " << tally.describe());
  CHECK(tally.lost == 0);
  CHECK(tally.refused == 0);
}

TEST_CASE("an outbox keeps what it acknowledged when the power fails at any step") {
  const Tally tally = campaign(outbox_workload(), cut);
  MESSAGE("outbox: " << tally.describe());
  CHECK(tally.lost == 0);
  CHECK(tally.refused == 0);
}

TEST_CASE("what an opening finds after a death outlives a power cut after it") {
  for (const Workload *workload : {&store_workload(), &outbox_workload()}) {
    const Tally tally = campaign(*workload, death_and_cut);
    MESSAGE(workload->name << ": " << tally.describe());
    CHECK(tally.lost == 0);
  }
}

TEST_CASE("the control without syncs loses what it acknowledged") {
  const Tally tally = campaign(store_workload(), cut_in_page_cache_mode, Durability::page_cache);
  MESSAGE("store in page-cache mode: " << tally.describe());
  CHECK(tally.lost > 0);
}

TEST_CASE("unsynced bytes that are garbage after a power cut are refused or cost nothing") {
  for (const Workload *workload : {&store_workload(), &outbox_workload()}) {
    const Tally tally = campaign(*workload, cut_with_garbage);
    MESSAGE(workload->name << " with garbage: " << tally.describe());
    CHECK(tally.lost == 0);
  }
}
