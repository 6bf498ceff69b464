#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "disk/trial.hpp"

namespace onced::testing {

// What a campaign has seen.
struct Tally {
  std::uint64_t steps = 0;  // that a run has when nothing befalls it
  std::uint64_t trials = 0; // runs
  std::uint64_t struck = 0; // of those, the ones that trouble has befallen
  std::uint64_t told = 0;   // actions that were acknowledged in the trials
  std::uint64_t lost = 0;   // of those, how many are gone
  std::uint64_t refused = 0;

  [[nodiscard]] std::string describe() const;
};

// The troubles of one step; their step and seed are set by the campaign.
using Choose = std::function<std::vector<TrialOptions>(std::uint64_t step, std::uint64_t seed, StepKind kind)>;

// Trials of every step of the workload: CHECKs that there is nothing to complain of. By the environment:
// ONCED_DISK_SEEDS=K tries each step with the seeds 1 to K instead of with 1, and ONCED_TEST_SEED=S with seed S alone;
// ONCED_DISK_STRIDE=K tries every Kth step only, which is the short form; ONCED_DISK_STEP=N tries step N only, to
// repeat what failed. `durability` is that of all its trials: without syncs there are fewer steps.
[[nodiscard]] Tally campaign(const Workload &workload, const Choose &choose, Durability durability = Durability::fsync);

} // namespace onced::testing
