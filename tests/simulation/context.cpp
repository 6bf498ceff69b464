#include "context.hpp"

namespace simulation {

using std::chrono::microseconds;

void Tally::add(const Tally &other) {
  steps += other.steps;
  deliveries += other.deliveries;
  worker_crashes += other.worker_crashes;
  sender_crashes += other.sender_crashes;
  write_failures += other.write_failures;
  resends += other.resends;
  settled += other.settled;
  told_again += other.told_again;
  conflicts += other.conflicts;
  waits += other.waits;
  ignored_replies += other.ignored_replies;
  new_boots += other.new_boots;
  full_pipes += other.full_pipes;
  hand_overs += other.hand_overs;
  given_back += other.given_back;
  expired += other.expired;
  late += other.late;
  exhausted += other.exhausted;
  orphans += other.orphans;
  races += other.races;
  late_commits += other.late_commits;
  committed_elsewhere += other.committed_elsewhere;
}

Context::Context(std::uint64_t world_seed, const RunOptions &run)
    // Neighbouring seeds are neighbouring states of the generator, so they are mixed first.
    : options(run), seed(mixed(world_seed)), chance(seed), plan(Plan::drawn(chance)), ledger(plan.jobs), now(start),
      quiet_from(start + plan.horizon), outage_until(start) {}

// A function of the time, so that it draws nothing from the stream that all else is drawn from.
microseconds Context::wall_jump() const {
  if (!options.wall_jumps) return microseconds(0);
  constexpr std::chrono::seconds between_jumps{2};
  const auto hour = static_cast<std::uint64_t>(microseconds(std::chrono::hours(1)).count());
  const std::uint64_t drawn = mixed(seed ^ static_cast<std::uint64_t>((now - start) / between_jumps)) % (2 * hour + 1);
  return microseconds(drawn) - microseconds(hour);
}

onced::WallTime Context::wall() const {
  const onced::WallTime at_start{std::chrono::hours(500'000)};
  return at_start + std::chrono::duration_cast<microseconds>(now - start) + wall_jump();
}

void Context::transmit(const Event &packet) {
  if (!calm() && (now < outage_until || chance.happens(plan.loss_percent))) return;
  do {
    const bool late = !calm() && chance.happens(plan.late_percent);
    schedule_in(chance.up_to(late ? plan.late_max : plan.delay_max), packet);
  } while (!calm() && chance.happens(plan.copies_percent));
}

} // namespace simulation
