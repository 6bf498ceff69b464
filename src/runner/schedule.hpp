#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wake.hpp"
#include "onced/clock.hpp"
#include "onced/handler.hpp"
#include "onced/random.hpp"
#include "runner/leases.hpp"

namespace onced::runner {

// Jobs of a type without one wait.
[[nodiscard]] bool has_handler(const QueuedType &type);

// The leases, as the threads share them that run handlers, and the one that keeps their time; and the functions that
// run under them. All calls from any thread, unless they say otherwise.
class Schedule {
public:
  // Types whose handler is empty are left out: their jobs wait in the store. `boot` as of Leases. `clock` must outlive
  // it. With `cut_heartbeats` no lease is extended: a knob of the lab. Of each type so many jobs are in memory.
  Schedule(const Handlers &handlers, std::uint64_t boot, Clock &clock, Random &random, bool cut_heartbeats,
           std::size_t jobs_in_memory);

  // As of Leases.
  Leases::Added add(BytesView key, std::string_view type, std::uint32_t receives, WallTime accepted_at);
  [[nodiscard]] std::vector<std::string_view> begin_refill();
  bool started(const FencingToken &token);
  bool give_back(const FencingToken &token, Leases::Obstacle obstacle);
  bool heartbeat(const FencingToken &token);
  bool ended(const FencingToken &token);
  void forget(const FencingToken &token);
  void retry(const FencingToken &token);
  [[nodiscard]] std::vector<Leases::Expired> expire();

  // A job waits in the store, as somebody has just written: also where the lease of an earlier receive is about to end.
  void announce(BytesView key, std::string_view type, WallTime accepted_at);
  // The job is in nobody's hand any more: what was announced of it meanwhile is added.
  void let_go(BytesView key);

  // The next job of a type; waits while there is none. Nothing: no more is taken. Each type has threads of its own, so
  // that a function that hangs takes none of another's.
  [[nodiscard]] std::optional<Leases::HandOver> take(std::string_view type);

  // A function runs under this lease: until `unwatch` the lease is extended by `beat`, up to the deadline. Past it, and
  // when `stop_if_due` says so, the function is asked to stop.
  void watch(const FencingToken &token, std::chrono::milliseconds deadline, std::chrono::milliseconds interval,
             std::stop_source stop);
  void unwatch(const FencingToken &token);
  // Extends the leases of those that are watched, and asks those to stop whose deadline has passed.
  void beat();

  // Waits until `expire`, `beat` or `begin_refill` may have something to do, or `nudge` was called since the last time,
  // or for so long. One thread.
  void wait(std::optional<std::chrono::milliseconds> at_most);
  void nudge();

  // No more is taken; what still runs after so long is asked to stop. A second call can only make that earlier.
  void drain(std::chrono::milliseconds run_on = {});
  // Asks functions and commands to stop, once, when that time has come.
  void stop_if_due();
  // A descriptor that becomes readable when commands are to stop, and stays so.
  [[nodiscard]] int stop_descriptor() const { return stop_commands_.descriptor(); }
  [[nodiscard]] bool draining() const;

  struct TypeState {
    std::string_view type; // lives as long as the handlers
    Leases::Counters counters;
    std::optional<std::chrono::milliseconds> oldest_age; // nothing: there are no jobs
  };
  [[nodiscard]] std::vector<TypeState> state() const;

private:
  struct Function {
    std::chrono::milliseconds interval;
    MonotonicTime next_beat;
    MonotonicTime deadline;
    std::stop_source stop;
  };

  // What was accepted then, on the monotonic clock. Only for the age that is shown.
  [[nodiscard]] MonotonicTime monotonic_of(WallTime accepted_at, MonotonicTime now) const;
  // These with the lock.
  Leases::Added add_locked(BytesView key, std::string_view type, std::uint32_t receives, MonotonicTime accepted_at,
                           MonotonicTime now);
  void wake_after_end(MonotonicTime now);
  [[nodiscard]] std::optional<MonotonicTime> next_event(MonotonicTime now) const;
  void wake_executors_if_due(MonotonicTime now);

  std::vector<std::string_view> types_;
  Clock &clock_;
  bool cut_heartbeats_;
  Wake stop_commands_;       // rung once, and never cleared
  mutable std::mutex mutex_; // guards the rest
  std::condition_variable job_due_;
  std::condition_variable keeper_due_;
  Leases leases_;
  std::map<FencingToken, Function> functions_;
  std::map<Bytes, std::pair<std::string, MonotonicTime>, std::less<>> announced_; // of jobs that are leased
  bool draining_ = false;
  bool stopping_ = false;
  MonotonicTime stop_at_ = MonotonicTime::max();
  bool nudged_ = false;
};

} // namespace onced::runner
