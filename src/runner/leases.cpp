#include "runner/leases.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "onced/limits.hpp"

namespace onced::runner {

Leases::Type::Type(const LeaseOptions &of_type) : options(of_type), backoff(of_type.backoff, of_type.backoff_max) {
  ONCED_CHECK(options.concurrency > 0 && options.max_receive_count > 0 && options.jobs_max >= options.concurrency);
  // Keeps timers far from overflow, as backoffs are.
  options.visibility_timeout = std::clamp<std::chrono::milliseconds>(
      options.visibility_timeout, std::chrono::milliseconds(1), limits::retry_delay_max);
}

Leases::Leases(const std::vector<LeaseOptions> &types, std::uint64_t boot, Random &random)
    : boot_(boot), jitter_(random.next()) {
  for (const LeaseOptions &options : types) {
    const bool is_new = types_.try_emplace(options.type, options).second;
    ONCED_CHECK(is_new);
  }
}

Leases::Added Leases::add(BytesView key, std::string_view type_name, std::uint32_t receives, MonotonicTime accepted_at,
                          MonotonicTime now) {
  const auto found = types_.find(type_name);
  if (found == types_.end()) return Added::unhandled;
  if (jobs_.find(key) != jobs_.end()) return Added::known;
  Type &type = found->second;
  if (receives >= type.options.max_receive_count) return Added::exhausted;
  // While some stay in the store no newer job goes before them, or they might stay there for ever.
  if (places_taken(type) >= type.options.jobs_max) type.more_in_store = true;
  if (type.more_in_store) {
    type.oldest_in_store = std::min(type.oldest_in_store.value_or(accepted_at), accepted_at);
    return Added::full;
  }
  type.accepted_at.insert(accepted_at);
  const Job job{.type = &type,
                .place = ++last_place_,
                .receives = receives,
                .state = State::waiting,
                .timer = now,
                .accepted_at = accepted_at};
  make_waiting(jobs_.emplace(key, job).first, now);
  return Added::waiting;
}

std::vector<std::string_view> Leases::begin_refill() {
  std::vector<std::string_view> names;
  for (auto &[name, type] : types_) {
    // Not for each place: looking through the store is dear.
    if (!type.more_in_store || places_taken(type) > type.options.jobs_max / 2) continue;
    type.more_in_store = false;
    type.oldest_in_store.reset();
    names.emplace_back(name);
  }
  return names;
}

std::optional<Leases::HandOver> Leases::take(std::string_view type_name, MonotonicTime now) {
  const auto type = types_.find(type_name);
  if (draining_ || type == types_.end()) return std::nullopt;
  const auto at = next_take(type->second);
  if (!at || *at > now) return std::nullopt;
  return lease_first(type->second);
}

bool Leases::is_leased(BytesView key) const {
  const auto job = jobs_.find(key);
  return job != jobs_.end() && job->second.state != State::waiting;
}

bool Leases::started(const FencingToken &token, MonotonicTime now) {
  const auto lease = find(token);
  if (lease == leased_.end() || lease->second->second.state != State::starting) return false;
  Job &job = lease->second->second;
  --job.type->starting;
  ++job.type->running;
  job.type->failed_starts = 0;
  job.state = State::running;
  run_until(lease, now + job.type->options.visibility_timeout);
  return true;
}

bool Leases::give_back(const FencingToken &token, Obstacle obstacle, MonotonicTime now) {
  const auto lease = find(token);
  if (lease == leased_.end() || lease->second->second.state != State::starting) return false;
  const auto job = lease->second;
  Type &type = *job->second.type;
  end_lease(lease);
  --job->second.receives;
  if (obstacle == Obstacle::job) {
    make_waiting(job, now + type.backoff.after(1, jitter_));
    return true;
  }
  // Several that were starting fail of one cause: that is one failure.
  if (type.paused_until <= now) type.paused_until = now + type.backoff.after(++type.failed_starts, jitter_);
  make_waiting(job, job->second.timer);
  return true;
}

bool Leases::heartbeat(const FencingToken &token, MonotonicTime now) {
  const auto lease = find(token);
  if (lease == leased_.end() || lease->second->second.state != State::running) return false;
  const Job &job = lease->second->second;
  expiries_.erase({job.timer, token.count});
  run_until(lease, now + job.type->options.visibility_timeout);
  return true;
}

bool Leases::ended(const FencingToken &token) {
  const auto lease = find(token);
  if (lease == leased_.end() || lease->second->second.state != State::running) return false;
  expiries_.erase({lease->second->second.timer, token.count});
  lease->second->second.state = State::ended;
  return true;
}

bool Leases::forget(const FencingToken &token) {
  const auto lease = find(token);
  if (lease == leased_.end()) return false;
  const auto job = lease->second;
  end_lease(lease);
  remove(job);
  return true;
}

bool Leases::retry(const FencingToken &token, MonotonicTime now) {
  const auto lease = find(token);
  if (lease == leased_.end()) return false;
  const auto job = lease->second;
  end_lease(lease);
  make_waiting(job, now + job->second.type->backoff.after(job->second.receives, jitter_));
  return true;
}

std::vector<Leases::Expired> Leases::expire(MonotonicTime now) {
  std::vector<Expired> expired;
  while (!expiries_.empty() && expiries_.begin()->first.first <= now) {
    const auto lease = expiries_.begin()->second;
    const auto job = lease->second;
    expired.push_back({{boot_, lease->first}, job->first, job->second.type->options.type, false});
    end_lease(lease);
    expired.back().exhausted = job->second.receives >= job->second.type->options.max_receive_count;
    expired.back().exhausted ? remove(job) : make_waiting(job, now);
  }
  return expired;
}

std::optional<MonotonicTime> Leases::next_due(MonotonicTime now) const {
  std::optional<MonotonicTime> next;
  if (!expiries_.empty()) next = expiries_.begin()->first.first;
  for (const auto &[name, type] : types_) {
    const auto at = draining_ ? std::nullopt : next_take(type);
    if (at && (!next || *at < *next)) next = at;
  }
  if (next) next = std::max(*next, now);
  return next;
}

Leases::Counters Leases::counters(std::string_view type_name) const {
  const auto found = types_.find(type_name);
  if (found == types_.end()) return {};
  const Type &type = found->second;
  return {type.waiting.size(), type.starting, type.running, type.more_in_store};
}

std::optional<MonotonicTime> Leases::oldest_since(std::string_view type_name) const {
  const auto found = types_.find(type_name);
  if (found == types_.end()) return std::nullopt;
  const Type &type = found->second;
  if (type.accepted_at.empty()) return type.oldest_in_store;
  return std::min(type.oldest_in_store.value_or(*type.accepted_at.begin()), *type.accepted_at.begin());
}

std::size_t Leases::places_taken(const Type &type) {
  return type.waiting.size() + type.starting + type.running;
}

// When the first of its jobs may be taken; nothing where none waits, or no lease is free.
std::optional<MonotonicTime> Leases::next_take(const Type &type) {
  if (type.waiting.empty() || type.starting + type.running >= type.options.concurrency) return std::nullopt;
  return std::max(type.waiting.begin()->first.first, type.paused_until);
}

Leases::HandOver Leases::lease_first(Type &type) {
  const auto job = type.waiting.begin()->second;
  type.waiting.erase(type.waiting.begin());
  ++type.starting;
  job->second.state = State::starting;
  ++job->second.receives;
  leased_.emplace_hint(leased_.end(), ++last_count_, job);
  return {{boot_, last_count_}, job->first, type.options.type, job->second.receives};
}

Leases::Leased::iterator Leases::find(const FencingToken &token) {
  return token.boot == boot_ ? leased_.find(token.count) : leased_.end();
}

void Leases::run_until(Leased::iterator lease, MonotonicTime expiry) {
  lease->second->second.timer = expiry;
  expiries_.emplace(Place{expiry, lease->first}, lease);
}

// Leaves the job in no state; the caller gives it one, or forgets it.
void Leases::end_lease(Leased::iterator lease) {
  const Job &job = lease->second->second;
  if (job.state == State::running) expiries_.erase({job.timer, lease->first});
  --(job.state == State::starting ? job.type->starting : job.type->running);
  leased_.erase(lease);
}

void Leases::remove(Jobs::iterator job) {
  auto &accepted_at = job->second.type->accepted_at;
  accepted_at.erase(accepted_at.find(job->second.accepted_at));
  jobs_.erase(job);
}

void Leases::make_waiting(Jobs::iterator job, MonotonicTime due) {
  job->second.state = State::waiting;
  job->second.timer = due;
  job->second.type->waiting.emplace(Place{due, job->second.place}, job);
}

} // namespace onced::runner
