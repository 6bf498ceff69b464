#include "sender/redelivery.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace onced {

Redelivery::Redelivery(const RedeliveryOptions &options, Random &random)
    : options_(options), backoff_(options.acknowledgement_timeout, options.acknowledgement_timeout_max),
      jitter_(random.next()) {
  ONCED_CHECK(options_.window_jobs_max > 0 && options_.window_bytes_max > 0);
  options_.accepted_ask_again = std::clamp<std::chrono::milliseconds>(
      options_.accepted_ask_again, std::chrono::milliseconds(1), limits::retry_delay_max);
}

bool Redelivery::has_room(std::size_t job_bytes) const {
  return jobs_.size() < options_.jobs_max && job_bytes <= options_.window_bytes_max &&
         job_bytes <= options_.bytes_max - counters_.bytes;
}

Sequence Redelivery::add(Bytes job, const Tag &tag, WallTime issued_at) {
  const Sequence sequence = take_sequence();
  restore(sequence, std::move(job), tag, issued_at);
  return sequence;
}

void Redelivery::restore(Sequence sequence, Bytes job, const Tag &tag, WallTime issued_at) {
  // A job larger than the window would never be sent, and no job behind it either.
  ONCED_CHECK(has_room(job.size()));
  const std::uint64_t number = number_of(sequence);
  const std::size_t bytes = job.size();
  const bool is_new = jobs_.emplace(number, Job{std::move(job), tag, issued_at, State::due, 0, 0, {}, {}}).second;
  ONCED_CHECK(is_new);
  counters_.bytes += bytes;
  due_.insert(due_.end(), number);
}

Sequence Redelivery::take_sequence() {
  ONCED_CHECK(last_sequence_ < std::numeric_limits<std::uint64_t>::max());
  return Sequence{++last_sequence_};
}

void Redelivery::on_greeting(const BootId &boot, MonotonicTime now, std::optional<WallTime> horizon) {
  expire_timers(now);
  horizon_ = horizon;
  if (boot_ == boot) return;
  boot_ = boot;
  for (auto &[number, job] : jobs_) {
    job.attempts_before_boot = job.attempts;
    if (job.state != State::due) make_due(number, job);
  }
}

std::vector<Redelivery::DueJob> Redelivery::due(MonotonicTime now, std::size_t jobs_max, std::size_t bytes_max) {
  expire_timers(now);
  std::vector<DueJob> result;
  if (!boot_) return result;

  std::size_t bytes = 0;
  // Stops at the first job that does not fit: a large job is not passed by for ever.
  for (const std::uint64_t number : due_) {
    const Job &job = jobs_.at(number);
    const std::size_t bytes_with_it = bytes + job.bytes.size();
    if (result.size() >= jobs_max || !window_admits(result.size() + 1, bytes_with_it)) break;
    if (!result.empty() && bytes_with_it > bytes_max) break;
    bytes = bytes_with_it;
    result.push_back({Sequence{number}, job.tag, job.attempts + 1, job.issued_at, job.bytes});
  }
  return result;
}

void Redelivery::sent(std::span<const DueJob> jobs, MonotonicTime now) {
  for (const DueJob &sent_job : jobs) {
    const std::uint64_t number = number_of(sent_job.sequence);
    Job &job = jobs_.at(number);
    ONCED_CHECK(job.state == State::due && job.attempts + 1 == sent_job.attempt);
    ONCED_CHECK(window_admits(1, job.bytes.size()));
    ++job.attempts;
    if (job.attempts > 1) ++counters_.resends;
    make_timed(number, job, State::in_flight, now + backoff_of(job));
  }
}

Redelivery::ReplyResult Redelivery::on_reply(const Reply &reply, MonotonicTime now) {
  const std::uint64_t number = number_of(reply.sequence);
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || found->second.tag != reply.tag || found->second.attempts == 0 ||
      !is_borne_out(reply.outcome, found->second)) {
    ++counters_.ignored_replies;
    return {ReplyEffect::ignored, std::nullopt};
  }

  Job &job = found->second;
  if (!traits_of(reply.outcome).final) {
    note_said(job, reply);
    wait_for(number, job, reply.outcome, now);
    return {ReplyEffect::waiting, std::nullopt};
  }

  leave_state(number, job);
  if (job.said && job.said->outcome == Outcome::accepted) --counters_.accepted;
  counters_.bytes -= job.bytes.size();
  Settled settled{.sequence = reply.sequence,
                  .outcome = reply.outcome,
                  .result = Bytes(reply.result),
                  .detail = std::string(reply.detail),
                  .attempts = job.attempts,
                  .durability = reply.durability,
                  .job = std::move(job.bytes)};
  jobs_.erase(found);
  return {ReplyEffect::settled, std::move(settled)};
}

// The tag covers the bytes of a job and not its issue time, so somebody else may have had the worker judge by another.
bool Redelivery::is_borne_out(Outcome outcome, const Job &job) const {
  return outcome != Outcome::expired || (horizon_ && job.issued_at < *horizon_);
}

void Redelivery::note_said(Job &job, const Reply &reply) {
  constexpr std::size_t detail_bytes_kept = 160; // of each of limits::sender_jobs_max jobs
  if (job.said && job.said->outcome == Outcome::accepted) --counters_.accepted;
  if (reply.outcome == Outcome::accepted) ++counters_.accepted;
  job.said = Said{.outcome = reply.outcome, .detail = utf8::repaired(reply.detail, detail_bytes_kept)};
}

std::optional<Redelivery::Said> Redelivery::last_said(Sequence sequence) const {
  const auto found = jobs_.find(number_of(sequence));
  if (found == jobs_.end() || !found->second.said) return std::nullopt;
  const Job &job = found->second;
  if (job.said->outcome == Outcome::busy && job.state != State::waiting) return std::nullopt;
  return job.said;
}

std::optional<Sequence> Redelivery::first_unsettled() const {
  std::optional<Sequence> first;
  for (const auto &[number, job] : jobs_) {
    if (!first || number < number_of(*first)) first = Sequence{number};
  }
  return first;
}

std::optional<MonotonicTime> Redelivery::next_due(MonotonicTime now) const {
  if (!boot_) return std::nullopt;
  if (!due_.empty() && window_admits(1, jobs_.at(*due_.begin()).bytes.size())) return now;
  // Where the window is full, jobs are in flight, so there is a timer.
  if (timers_.empty()) return std::nullopt;
  return std::max(now, timers_.begin()->first);
}

Redelivery::Counters Redelivery::counters() const {
  Counters counters = counters_;
  counters.unsettled = jobs_.size();
  return counters;
}

bool Redelivery::window_admits(std::size_t jobs, std::size_t bytes) const {
  // Neither difference wraps: what is in flight is always within the window.
  return jobs <= options_.window_jobs_max - counters_.in_flight &&
         bytes <= options_.window_bytes_max - counters_.in_flight_bytes;
}

MonotonicTime::duration Redelivery::backoff_of(const Job &job) {
  // A job made due by a greeting may be answered by a late reply of the earlier boot, before any attempt to this one.
  return backoff_.after(std::max<std::uint32_t>(1, job.attempts - job.attempts_before_boot), jitter_);
}

// Takes the job out of the set and the counts of its state.
void Redelivery::leave_state(std::uint64_t number, const Job &job) {
  if (job.state == State::due) {
    due_.erase(number);
    return;
  }
  timers_.erase({job.timer, number});
  if (job.state == State::waiting) {
    --counters_.waiting;
    return;
  }
  --counters_.in_flight;
  counters_.in_flight_bytes -= job.bytes.size();
}

void Redelivery::make_due(std::uint64_t number, Job &job) {
  leave_state(number, job);
  job.state = State::due;
  due_.insert(number);
}

void Redelivery::make_timed(std::uint64_t number, Job &job, State state, MonotonicTime timer) {
  leave_state(number, job);
  job.state = state;
  job.timer = timer;
  timers_.emplace(timer, number);
  if (state == State::waiting) {
    ++counters_.waiting;
    return;
  }
  ++counters_.in_flight;
  counters_.in_flight_bytes += job.bytes.size();
}

void Redelivery::wait_for(std::uint64_t number, Job &job, Outcome outcome, MonotonicTime now) {
  MonotonicTime timer = now;
  if (outcome == Outcome::accepted) {
    timer += options_.accepted_ask_again;
  } else {
    timer += backoff_of(job);
  }
  if (job.state == State::waiting) timer = std::min(timer, job.timer);
  make_timed(number, job, State::waiting, timer);
}

void Redelivery::expire_timers(MonotonicTime now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::uint64_t number = timers_.begin()->second;
    make_due(number, jobs_.at(number));
  }
}

} // namespace onced
