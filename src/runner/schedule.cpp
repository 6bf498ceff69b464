#include "runner/schedule.hpp"

#include <algorithm>

namespace onced::runner {
namespace {

// Where a job is due and no thread takes it, as it was only just told to, or hangs in a function whose lease is lost.
constexpr std::chrono::milliseconds pause_for_executors{10};

std::vector<LeaseOptions> lease_options(const Handlers &handlers, std::size_t jobs_in_memory) {
  std::vector<LeaseOptions> options;
  for (const auto &[name, type] : handlers.queued_types()) {
    if (!has_handler(type)) continue;
    options.push_back({.type = name,
                       .concurrency = type.concurrency,
                       .visibility_timeout = type.visibility_timeout,
                       .max_receive_count = type.max_receive_count,
                       .backoff = type.backoff,
                       .backoff_max = type.backoff_max,
                       .jobs_max = std::max<std::size_t>(jobs_in_memory, type.concurrency)});
  }
  return options;
}

} // namespace

bool has_handler(const QueuedType &type) {
  const auto *function = std::get_if<QueuedFunction>(&type.handler);
  return function == nullptr || *function;
}

Schedule::Schedule(const Handlers &handlers, std::uint64_t boot, Clock &clock, Random &random, bool cut_heartbeats,
                   std::size_t jobs_in_memory)
    : clock_(clock), cut_heartbeats_(cut_heartbeats), leases_(lease_options(handlers, jobs_in_memory), boot, random) {
  for (const auto &[name, type] : handlers.queued_types()) {
    if (has_handler(type)) types_.push_back(name);
  }
}

Leases::Added Schedule::add(BytesView key, std::string_view type, std::uint32_t receives, WallTime accepted_at) {
  const MonotonicTime now = clock_.monotonic();
  const MonotonicTime accepted = monotonic_of(accepted_at, now);
  const std::scoped_lock lock(mutex_);
  return add_locked(key, type, receives, accepted, now);
}

// Where the wall clock was set back meanwhile, it is young.
MonotonicTime Schedule::monotonic_of(WallTime accepted_at, MonotonicTime now) const {
  return now - std::max(clock_.wall() - accepted_at, WallTime::duration::zero());
}

Leases::Added Schedule::add_locked(BytesView key, std::string_view type, std::uint32_t receives,
                                   MonotonicTime accepted_at, MonotonicTime now) {
  const auto added = leases_.add(key, type, receives, accepted_at, now);
  if (added == Leases::Added::waiting) job_due_.notify_all();
  return added;
}

std::vector<std::string_view> Schedule::begin_refill() {
  const std::scoped_lock lock(mutex_);
  return leases_.begin_refill();
}

bool Schedule::started(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  keeper_due_.notify_one(); // its lease may be the first to expire
  return leases_.started(token, clock_.monotonic());
}

bool Schedule::give_back(const FencingToken &token, Leases::Obstacle obstacle) {
  const std::scoped_lock lock(mutex_);
  keeper_due_.notify_one();
  return leases_.give_back(token, obstacle, clock_.monotonic());
}

bool Schedule::heartbeat(const FencingToken &token) {
  if (cut_heartbeats_) return true;
  const std::scoped_lock lock(mutex_);
  return leases_.heartbeat(token, clock_.monotonic());
}

bool Schedule::ended(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  return leases_.ended(token);
}

void Schedule::forget(const FencingToken &token) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  leases_.forget(token);
  wake_after_end(now);
}

void Schedule::retry(const FencingToken &token) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  leases_.retry(token, now);
  wake_after_end(now);
}

void Schedule::wake_after_end(MonotonicTime now) {
  wake_executors_if_due(now); // its type has a lease free
  keeper_due_.notify_one();   // it may wait, with backoff, or leave its place to one in the store
}

std::vector<Leases::Expired> Schedule::expire() {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  auto expired = leases_.expire(now);
  wake_executors_if_due(now);
  return expired;
}

// In one step: a lease that ends in between would let go of a job that is not announced yet.
void Schedule::announce(BytesView key, std::string_view type, WallTime accepted_at) {
  const MonotonicTime now = clock_.monotonic();
  const MonotonicTime accepted = monotonic_of(accepted_at, now);
  const std::scoped_lock lock(mutex_);
  if (add_locked(key, type, 0, accepted, now) != Leases::Added::known || !leases_.is_leased(key)) return;
  announced_.insert_or_assign(Bytes(key), std::pair(std::string(type), accepted));
}

void Schedule::let_go(BytesView key) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  const auto found = announced_.find(key);
  if (found == announced_.end()) return;
  const auto announced = announced_.extract(found);
  add_locked(key, announced.mapped().first, 0, announced.mapped().second, now);
}

std::optional<Leases::HandOver> Schedule::take(std::string_view type) {
  std::unique_lock lock(mutex_);
  while (!draining_) {
    const MonotonicTime now = clock_.monotonic();
    if (auto taken = leases_.take(type, now)) return taken;
    keeper_due_.notify_one(); // it wakes an executor when the next is due
    job_due_.wait(lock);
  }
  return std::nullopt;
}

void Schedule::watch(const FencingToken &token, std::chrono::milliseconds deadline, std::chrono::milliseconds interval,
                     std::stop_source stop) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  if (stopping_) stop.request_stop(); // nobody has been told of it yet
  functions_.emplace(token, Function{interval, now + interval, now + deadline, std::move(stop)});
  keeper_due_.notify_one();
}

void Schedule::unwatch(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  functions_.erase(token);
}

// What is asked to stop may run code of its own at once, so that is done without the lock.
void Schedule::beat() {
  std::vector<std::stop_source> stops;
  {
    const MonotonicTime now = clock_.monotonic();
    const std::scoped_lock lock(mutex_);
    for (auto &[token, function] : functions_) {
      if (now < function.next_beat && now < function.deadline) continue;
      const bool late = now >= function.deadline;
      const bool keeps = !late && (cut_heartbeats_ || leases_.heartbeat(token, now));
      if (!keeps) stops.push_back(function.stop);
      function.next_beat = keeps ? now + function.interval : MonotonicTime::max();
      if (late) function.deadline = MonotonicTime::max();
    }
  }
  for (const std::stop_source &stop : stops)
    stop.request_stop();
}

void Schedule::wait(std::optional<std::chrono::milliseconds> at_most) {
  std::unique_lock lock(mutex_);
  if (!nudged_) {
    const MonotonicTime now = clock_.monotonic();
    wake_executors_if_due(now);
    std::optional<MonotonicTime::duration> wait = at_most;
    if (const auto next = next_event(now)) wait = std::min(wait.value_or(*next - now), *next - now);
    if (!wait) {
      keeper_due_.wait(lock);
    } else {
      keeper_due_.wait_for(lock, std::max<MonotonicTime::duration>(*wait, pause_for_executors));
    }
  }
  nudged_ = false;
}

void Schedule::nudge() {
  const std::scoped_lock lock(mutex_);
  nudged_ = true;
  keeper_due_.notify_one();
}

void Schedule::drain(std::chrono::milliseconds run_on) {
  const MonotonicTime stop_at = clock_.monotonic() + run_on;
  std::unique_lock lock(mutex_);
  draining_ = true;
  stop_at_ = std::min(stop_at_, stop_at);
  leases_.drain();
  job_due_.notify_all();
  keeper_due_.notify_one();
  lock.unlock();
  stop_if_due();
}

void Schedule::stop_if_due() {
  std::vector<std::stop_source> stops;
  {
    const MonotonicTime now = clock_.monotonic();
    const std::scoped_lock lock(mutex_);
    if (stopping_ || now < stop_at_) return;
    stopping_ = true;
    for (const auto &[token, function] : functions_)
      stops.push_back(function.stop);
  }
  for (const std::stop_source &stop : stops)
    stop.request_stop();
  stop_commands_.ring();
}

bool Schedule::draining() const {
  const std::scoped_lock lock(mutex_);
  return draining_;
}

std::vector<Schedule::TypeState> Schedule::state() const {
  using std::chrono::milliseconds;
  const MonotonicTime now = clock_.monotonic();
  std::vector<TypeState> states;
  const std::scoped_lock lock(mutex_);
  for (const std::string_view type : types_) {
    TypeState state{.type = type, .counters = leases_.counters(type), .oldest_age = {}};
    if (const auto since = leases_.oldest_since(type)) {
      state.oldest_age = std::chrono::duration_cast<milliseconds>(std::max(now, *since) - *since);
    }
    states.push_back(state);
  }
  return states;
}

std::optional<MonotonicTime> Schedule::next_event(MonotonicTime now) const {
  auto next = leases_.next_due(now);
  if (!stopping_ && stop_at_ != MonotonicTime::max()) next = std::min(next.value_or(stop_at_), stop_at_);
  for (const auto &[token, function] : functions_) {
    const MonotonicTime at = std::min(function.next_beat, function.deadline);
    if (at != MonotonicTime::max()) next = std::min(next.value_or(at), at);
  }
  return next;
}

void Schedule::wake_executors_if_due(MonotonicTime now) {
  const auto next = leases_.next_due(now);
  if (next && *next <= now) job_due_.notify_all();
}

} // namespace onced::runner
