#include "sender_model.hpp"

#include <algorithm>
#include <chrono>

#include "rules.hpp"

namespace simulation {

using onced::Outcome;
using onced::Redelivery;
using onced::Sequence;

void SenderModel::begin_life() {
  for (Held &held : held_)
    held = Held();
  open_ = 0;
  open_bytes_ = 0;
  boot_.reset();
  resends_ = 0;
  ignored_ = 0;
  interval_end_ = Time();
}

SenderModel::Held *SenderModel::find(Sequence sequence) {
  const std::uint64_t number = onced::number_of(sequence);
  return number == 0 || number > held_.size() ? nullptr : &held_[number - 1];
}

void SenderModel::on_held(const Job &job) {
  const std::size_t number = onced::number_of(job.sequence);
  if (held_.size() < number) held_.resize(number);
  Held &held = held_[number - 1];
  held = Held();
  held.place = Place::due;
  held.bytes = job.bytes.size();
  held.tag = job.tag;
  ++open_;
  open_bytes_ += held.bytes;
}

bool SenderModel::on_greeting(std::uint32_t boot, Time now) {
  if (boot_ == boot) return false;
  boot_ = boot;
  boot_is_new_ = true;
  if (now < interval_end_) interval_sends_max_ += options_.window_jobs_max;
  for (Held &held : held_) {
    held.attempts_before_boot = held.attempts;
    if (held.open()) held.place = Place::due;
  }
  return true;
}

void SenderModel::check_due(std::span<const Redelivery::DueJob> jobs, std::size_t jobs_max, std::size_t bytes_max,
                            Time now) const {
  std::size_t bytes = 0;
  std::uint64_t previous = 0;
  for (const Redelivery::DueJob &due : jobs) {
    const std::uint64_t number = onced::number_of(due.sequence);
    must(number > previous && number <= held_.size(), rules::oldest_first);
    for (std::uint64_t between = previous + 1; between < number; ++between) {
      const Held &passed_by = held_[between - 1];
      must(!passed_by.open() || (passed_by.place != Place::due && now < passed_by.latest), rules::oldest_first);
    }
    previous = number;
    bytes += due.job.size();
  }
  must(jobs.size() <= jobs_max && (bytes <= bytes_max || jobs.size() == 1), rules::asked_for);
}

void SenderModel::on_sent(const Redelivery::DueJob &sent, const Job &job, Time now) {
  must(boot_.has_value(), rules::greeted_first);
  Held *const held = find(sent.sequence);
  must(held != nullptr && held->open(), rules::only_sent);
  must(sent.attempt == held->attempts + 1, rules::attempts);
  must(sent.sequence == job.sequence && sent.tag == job.tag && sent.job == job.bytes && sent.issued_at == job.issued_at,
       rules::never_changes);
  must(held->place == Place::due || now >= held->earliest, rules::not_early);

  has_sent_ = true;
  if (++held->attempts > 1) ++resends_;
  const auto longest = longest_backoff(*held);
  held->place = Place::flying;
  held->earliest = now + longest / 2;
  held->latest = now + longest;
  const Bounds in_window = bounds(now);
  must(in_window.flying_least <= options_.window_jobs_max, rules::window);
  must(in_window.flying_bytes_least <= options_.window_bytes_max, rules::window);
  count_send(now);
}

void SenderModel::count_send(Time now) {
  if (now >= interval_end_) {
    interval_end_ = now + Time::duration(options_.acknowledgement_timeout) / 2;
    interval_sends_ = 0;
    interval_sends_max_ = options_.window_jobs_max;
  }
  must(++interval_sends_ <= interval_sends_max_, rules::no_storm);
}

SenderModel::Effect SenderModel::expected(const Held *held, const onced::Tag &tag, Outcome outcome) const {
  if (held == nullptr || !held->open() || held->tag != tag || held->attempts == 0) return Effect::ignored;
  return onced::traits_of(outcome).final ? Effect::settled : Effect::waiting;
}

void SenderModel::on_reply(Sequence sequence, const onced::Tag &tag, Outcome outcome, Effect effect, Time now) {
  Held *const held = find(sequence);
  const Effect right = expected(held, tag, outcome);
  must(effect == Effect::ignored || (held != nullptr && held->tag == tag), rules::tag_fits);
  must(effect == right, rules::only_sent);
  if (right == Effect::ignored) {
    ++ignored_;
    return;
  }
  if (now < interval_end_) ++interval_sends_max_;
  if (right == Effect::waiting) return wait(*held, outcome, now);
  held->place = Place::settled;
  --open_;
  open_bytes_ -= held->bytes;
}

void SenderModel::wait(Held &held, Outcome outcome, Time now) {
  const bool accepted = outcome == Outcome::accepted;
  const Time::duration longest = accepted ? Time::duration(options_.accepted_ask_again) : longest_backoff(held);
  Time earliest = now + (accepted ? longest : longest / 2);
  Time latest = now + longest;
  // The earlier of its two timers counts; where the old one may have run out already, only the new one bounds the wait.
  if (held.place == Place::waiting) {
    if (now < held.earliest) latest = std::min(latest, held.latest);
    earliest = std::min(earliest, held.earliest);
  }
  held.place = Place::waiting;
  held.earliest = earliest;
  held.latest = latest;
}

SenderModel::Time::duration SenderModel::longest_backoff(const Held &held) const {
  const std::uint32_t tried = std::max(1U, held.attempts - held.attempts_before_boot);
  const auto uncapped = options_.acknowledgement_timeout * (std::int64_t{1} << std::min(tried - 1, 20U));
  return std::min<std::chrono::milliseconds>(uncapped, options_.acknowledgement_timeout_max);
}

void SenderModel::end_step(const Redelivery &machine, bool pipe_full, Time now) {
  const Bounds in_window = bounds(now);
  const bool all_sent = boot_ && !pipe_full;
  must(!all_sent || !boot_is_new_ || has_sent_ || open_ == 0, rules::new_boot);
  check_counters(machine.counters(), in_window);
  must(boot_ || !machine.next_due(now), rules::greeted_first);
  if (all_sent) {
    check_nothing_held_back(in_window, now);
    if (open_ > 0) check_wake(machine.next_due(now), now);
  }
  boot_is_new_ = false;
  has_sent_ = false;
}

SenderModel::Bounds SenderModel::bounds(Time now) const {
  Bounds sum;
  for (const Held &held : held_) {
    if (held.place != Place::flying && held.place != Place::waiting) continue;
    const bool flying_surely = held.surely(Place::flying, now);
    const bool flying_perhaps = held.perhaps(Place::flying, now);
    sum.flying_least += flying_surely ? 1U : 0U;
    sum.flying_most += flying_perhaps ? 1U : 0U;
    sum.flying_bytes_least += flying_surely ? held.bytes : 0;
    sum.flying_bytes_most += flying_perhaps ? held.bytes : 0;
    sum.waiting_least += held.surely(Place::waiting, now) ? 1U : 0U;
    sum.waiting_most += held.perhaps(Place::waiting, now) ? 1U : 0U;
  }
  return sum;
}

void SenderModel::check_counters(const Redelivery::Counters &counters, const Bounds &in_window) const {
  must(counters.unsettled == open_, rules::nothing_vanishes);
  must(counters.bytes == open_bytes_, rules::counted);
  must(counters.resends == resends_ && counters.ignored_replies == ignored_, rules::counted);
  must(counters.in_flight <= options_.window_jobs_max && counters.in_flight_bytes <= options_.window_bytes_max,
       rules::window);
  must(in_window.waiting_least <= counters.waiting && counters.waiting <= in_window.waiting_most, rules::waits_outside);
  // One that has left the window too early would go out too early.
  must(in_window.flying_least <= counters.in_flight && in_window.flying_bytes_least <= counters.in_flight_bytes,
       rules::not_early);
  must(counters.in_flight <= in_window.flying_most && counters.in_flight_bytes <= in_window.flying_bytes_most,
       rules::counted);
}

// A due job is passed over only where the window is perhaps full, or has perhaps no room for the bytes of this job or
// of an older one.
void SenderModel::check_nothing_held_back(const Bounds &in_window, Time now) const {
  if (in_window.flying_most >= options_.window_jobs_max) return;
  for (const Held &held : held_) {
    if (!held.open() || (held.place != Place::due && now < held.earliest)) continue;
    if (in_window.flying_bytes_most + held.bytes > options_.window_bytes_max) return;
    must(held.place != Place::due && now < held.latest, rules::not_late);
  }
}

// All that fits the window has been sent, so something is timed, and what surely is wakes the sender in time.
void SenderModel::check_wake(std::optional<Time> wake, Time now) const {
  must(wake.has_value() && *wake > now, rules::wakes);
  for (const Held &held : held_) {
    if (held.place != Place::flying && held.place != Place::waiting) continue;
    must(now >= held.earliest || *wake <= held.latest, rules::wakes);
  }
}

} // namespace simulation
