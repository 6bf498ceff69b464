#include "runner/board.hpp"

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

Board::Board(const Handlers &handlers, std::uint64_t boot, Clock &clock, Random &random, bool cut_heartbeats,
             std::size_t jobs_in_memory)
    : clock_(clock), cut_heartbeats_(cut_heartbeats), leases_(lease_options(handlers, jobs_in_memory), boot, random) {
  for (const auto &[name, type] : handlers.queued_types()) {
    if (has_handler(type)) types_.push_back(name);
  }
}

Leases::Added Board::add(BytesView key, std::string_view type, std::uint32_t receives, WallTime accepted_at) {
  const MonotonicTime now = clock_.monotonic();
  // Only for the age that is shown: where the wall clock was set back meanwhile, it is young.
  const auto age = std::max(clock_.wall() - accepted_at, WallTime::duration::zero());
  const std::scoped_lock lock(mutex_);
  const auto added = leases_.add(key, type, receives, now - age, now);
  if (added == Leases::Added::waiting) job_due_.notify_all();
  return added;
}

std::vector<std::string_view> Board::begin_refill() {
  const std::scoped_lock lock(mutex_);
  return leases_.begin_refill();
}

bool Board::started(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  keeper_due_.notify_one(); // its lease may be the first to expire
  return leases_.started(token, clock_.monotonic());
}

bool Board::give_back(const FencingToken &token, Leases::Obstacle obstacle) {
  const std::scoped_lock lock(mutex_);
  keeper_due_.notify_one();
  return leases_.give_back(token, obstacle, clock_.monotonic());
}

bool Board::heartbeat(const FencingToken &token) {
  if (cut_heartbeats_) return true;
  const std::scoped_lock lock(mutex_);
  return leases_.heartbeat(token, clock_.monotonic());
}

bool Board::ended(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  return leases_.ended(token);
}

Leases::Settlement Board::settle(const FencingToken &token, Leases::Verdict verdict) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  const auto settlement = leases_.settle(token, verdict, now);
  wake_executors_if_due(now); // its type has a lease free
  keeper_due_.notify_one();   // it may wait, with backoff, or leave its place to one in the store
  return settlement;
}

std::vector<Leases::Expired> Board::expire() {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  auto expired = leases_.expire(now);
  wake_executors_if_due(now);
  return expired;
}

void Board::announce(BytesView key, std::string_view type, WallTime accepted_at) {
  if (add(key, type, 0, accepted_at) != Leases::Added::known) return;
  const std::scoped_lock lock(mutex_);
  if (leases_.is_leased(key)) announced_.insert_or_assign(Bytes(key), std::pair(std::string(type), accepted_at));
}

void Board::let_go(BytesView key) {
  std::pair<std::string, WallTime> announced;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = announced_.find(key);
    if (found == announced_.end()) return;
    announced = std::move(found->second);
    announced_.erase(found);
  }
  add(key, announced.first, 0, announced.second);
}

std::optional<Leases::HandOver> Board::take(std::string_view type) {
  std::unique_lock lock(mutex_);
  while (!draining_) {
    const MonotonicTime now = clock_.monotonic();
    if (auto taken = leases_.take_of(type, now)) return taken;
    keeper_due_.notify_one(); // it wakes an executor when the next is due
    job_due_.wait(lock);
  }
  return std::nullopt;
}

void Board::watch(const FencingToken &token, std::chrono::milliseconds deadline, std::chrono::milliseconds interval,
                  std::stop_source stop) {
  const MonotonicTime now = clock_.monotonic();
  const std::scoped_lock lock(mutex_);
  if (stopping_) stop.request_stop(); // nobody has been told of it yet
  functions_.emplace(token, Function{interval, now + interval, now + deadline, std::move(stop)});
  keeper_due_.notify_one();
}

void Board::unwatch(const FencingToken &token) {
  const std::scoped_lock lock(mutex_);
  functions_.erase(token);
}

// What is asked to stop may run code of its own at once, so that is done without the lock.
void Board::beat() {
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

void Board::wait(std::optional<std::chrono::milliseconds> at_most) {
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

void Board::nudge() {
  const std::scoped_lock lock(mutex_);
  nudged_ = true;
  keeper_due_.notify_one();
}

void Board::drain(std::chrono::milliseconds run_on) {
  const MonotonicTime stop_at = clock_.monotonic() + run_on;
  const std::scoped_lock lock(mutex_);
  draining_ = true;
  stop_at_ = std::min(stop_at_, stop_at);
  leases_.drain();
  job_due_.notify_all();
  keeper_due_.notify_one();
}

bool Board::stop_if_due() {
  std::vector<std::stop_source> stops;
  {
    const MonotonicTime now = clock_.monotonic();
    const std::scoped_lock lock(mutex_);
    if (stopping_ || now < stop_at_) return false;
    stopping_ = true;
    for (const auto &[token, function] : functions_)
      stops.push_back(function.stop);
  }
  for (const std::stop_source &stop : stops)
    stop.request_stop();
  return true;
}

bool Board::draining() const {
  const std::scoped_lock lock(mutex_);
  return draining_;
}

std::vector<Board::TypeState> Board::state() const {
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

std::optional<MonotonicTime> Board::next_event(MonotonicTime now) const {
  auto next = leases_.next_due(now);
  if (!stopping_ && stop_at_ != MonotonicTime::max()) next = std::min(next.value_or(stop_at_), stop_at_);
  for (const auto &[token, function] : functions_) {
    const MonotonicTime at = std::min(function.next_beat, function.deadline);
    if (at != MonotonicTime::max()) next = std::min(next.value_or(at), at);
  }
  return next;
}

void Board::wake_executors_if_due(MonotonicTime now) {
  const auto next = leases_.next_due(now);
  if (next && *next <= now) job_due_.notify_all();
}

} // namespace onced::runner
