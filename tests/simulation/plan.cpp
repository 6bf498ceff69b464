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

onced::runner::LeaseOptions drawn_leases(Chance &chance) {
  onced::runner::LeaseOptions options;
  options.concurrency = 1 + chance.below(3);
  options.visibility_timeout = between(chance, 200, 2000);
  options.max_receive_count = static_cast<std::uint32_t>(1 + chance.below(5));
  options.backoff = between(chance, 50, 500);
  options.backoff_max = options.backoff * static_cast<int>(1 + chance.below(8));
  options.jobs_max = options.concurrency + chance.below(4);
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
  plan.crash_percent = sometimes(chance, 10);
  plan.write_failure_percent = sometimes(chance, 10);

  plan.race_percent = sometimes(chance, 10);
  plan.late_commit_percent = sometimes(chance, 30);
  plan.visible_early = chance.happens(50);
  plan.rival_percent = sometimes(chance, 20);
  plan.has_cache = chance.happens(50);

  plan.leases = drawn_leases(chance);
  plan.execution_max = between(chance, 1, 3000);
  plan.try_again_percent = sometimes(chance, 60);
  plan.hang_percent = sometimes(chance, 40);
  plan.not_started_percent = sometimes(chance, 30);
  plan.orphan_percent = sometimes(chance, 90);

  plan.worker_crashes = sometimes(chance, 4);
  plan.sender_crashes = sometimes(chance, 4);
  plan.busy_times = sometimes(chance, 3);
  plan.outages = sometimes(chance, 2);
  plan.forgeries = sometimes(chance, 6);
  return plan;
}

// The pauses that still last end, and sender and worker greet each other, while the longest timer runs out; a reply
// that comes before the worker knows the way back costs another timer. Then the jobs take their turns, at worst one by
// one for want of room in memory; a queued one is asked for until it has ended, which each key is waited for once.
Plan::Duration Plan::settling_max() const {
  const Duration timer = std::max(redelivery.acknowledgement_timeout_max, redelivery.accepted_ask_again);
  const Duration turn = 2 * redelivery.accepted_ask_again + 2 * (2 * delay_max + commit_max);
  return 2 * pause_max + hello_interval + 2 * timer + static_cast<Duration::rep>(jobs) * turn +
         static_cast<Duration::rep>(std::min(jobs, keys)) * queued_max();
}

// A queued job uses up its receives, after its former handler, which hangs, or a pause of its type.
Plan::Duration Plan::queued_max() const {
  const Duration longest_run = execution_max + hang_max();
  return (leases.max_receive_count + 1) * (longest_run + leases.backoff_max + 4 * commit_max);
}

// Each timer of a job, each hello, each packet and each commit is a step, and so is each heartbeat, write and vain
// hand-over of a queued job; a late greeting sends every job again. While it lasts, hellos are said and accepted jobs
// asked for.
std::uint64_t Plan::calm_steps_max(Duration since) const {
  const auto in_all = [](Duration time, Duration interval) { return static_cast<std::uint64_t>(time / interval) + 1; };
  const std::uint64_t of_queued = in_all(queued_max(), leases.visibility_timeout / 3) +
                                  in_all(queued_max(), leases.backoff / 2) + 10 * (leases.max_receive_count + 1U);
  const std::uint64_t of_asking = in_all(since, redelivery.accepted_ask_again / 2);
  return 450 + 150 * jobs + std::min(jobs, keys) * of_queued + 3 * senders * in_all(since, hello_interval) +
         3 * jobs * of_asking;
}

} // namespace simulation
