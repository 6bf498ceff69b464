#include "plan.hpp"

#include <algorithm>

namespace simulation {

using std::chrono::milliseconds;

namespace {

milliseconds between(Chance &chance, std::uint64_t least, std::uint64_t most) {
  return milliseconds(least + chance.below(most - least + 1));
}

// Nothing in half of the worlds.
std::uint64_t sometimes(Chance &chance, std::uint64_t most) {
  return chance.happens(50) ? 1 + chance.below(most) : 0;
}

onced::RedeliveryOptions drawn_redelivery(Chance &chance) {
  onced::RedeliveryOptions options;
  options.jobs_max = 1 + chance.below(20);
  options.bytes_max = 20 + chance.below(200);
  options.window_jobs_max = 1 + chance.below(chance.happens(50) ? 3 : 20);
  options.window_bytes_max = 15 + chance.below(150);
  options.acknowledgement_timeout = between(chance, 20, 2000);
  options.acknowledgement_timeout_max =
      std::min(options.acknowledgement_timeout * static_cast<int>(1 + chance.below(30)), milliseconds(30'000));
  options.accepted_ask_again = between(chance, 500, 10'000);
  return options;
}

} // namespace

Plan Plan::drawn(Chance &chance) {
  Plan plan;
  plan.senders = 1 + chance.below(3);
  plan.jobs = 1 + chance.below(20);
  plan.keys = 1 + chance.below(8);
  plan.intents = 1 + chance.below(3);
  plan.horizon = between(chance, 1000, 20'000);
  plan.redelivery = drawn_redelivery(chance);
  plan.jobs_per_message = 1 + chance.below(8);
  plan.job_bytes_per_message = 1 + chance.below(100);

  plan.loss_percent = sometimes(chance, 60);
  plan.copies_percent = sometimes(chance, 40);
  plan.delay_max = between(chance, 1, chance.happens(50) ? 5 : 500);
  plan.late_percent = sometimes(chance, 10);
  plan.late_max = between(chance, 500, 30'000);
  plan.refused_percent = sometimes(chance, 30);

  plan.commit_max = between(chance, 1, chance.happens(50) ? 5 : 500);
  plan.execution_max = between(chance, 1, 3000);
  plan.crash_percent = sometimes(chance, 10);
  plan.write_failure_percent = sometimes(chance, 10);
  plan.worker_crashes = sometimes(chance, 4);
  plan.sender_crashes = sometimes(chance, 4);
  plan.busy_times = sometimes(chance, 3);
  plan.outages = sometimes(chance, 2);
  plan.forgeries = sometimes(chance, 6);
  return plan;
}

// The pauses that still last end, and sender and worker greet each other, while the longest timer runs out; a reply
// that comes before the worker knows the way back costs another timer. Then the jobs take their turns, at worst one by
// one for want of room in memory; a queued one is asked for until it has run.
Plan::Duration Plan::settling_max() const {
  const Duration timer = std::max(redelivery.acknowledgement_timeout_max, redelivery.accepted_ask_again);
  const Duration turn = execution_max + 2 * redelivery.accepted_ask_again + 2 * (2 * delay_max + commit_max);
  return 2 * pause_max + hello_interval + 2 * timer + static_cast<Duration::rep>(jobs) * turn;
}

} // namespace simulation
