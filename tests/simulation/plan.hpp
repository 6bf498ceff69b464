#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "chance.hpp"
#include "runner/leases.hpp"
#include "sender/redelivery.hpp"

namespace simulation {

// What one world is like. Each kind of fault is absent from a good part of the worlds, so that none hides another.
struct Plan {
  using Duration = onced::MonotonicTime::duration;

  std::size_t senders = 1;
  std::size_t jobs = 1;
  std::size_t keys = 1;
  std::size_t intents = 1;               // of each key
  Duration horizon{};                    // jobs are submitted and faults happen before it, and none after it
  onced::RedeliveryOptions redelivery;   // of every sender
  std::size_t jobs_per_message = 1;      // that a sender asks its state machine for
  std::size_t job_bytes_per_message = 1; //

  std::uint64_t loss_percent = 0;
  std::uint64_t copies_percent = 0;
  Duration delay_max{};
  std::uint64_t late_percent = 0; // of messages that come seconds late
  Duration late_max{};
  std::uint64_t refused_percent = 0; // of the sends that find the sender's pipe full

  Duration commit_max{};
  std::uint64_t crash_percent = 0;         // of the worker's commits: it crashes just before or just after
  std::uint64_t write_failure_percent = 0; // of the worker's commits: whether the row is there is unknown

  std::uint64_t race_percent = 0;        // of the steps of its units: they lose a race, and are made again
  std::uint64_t late_commit_percent = 0; // of the rows that are looked up: another put them just after
  bool visible_early = false;            // commits can be read before they are stable
  std::uint64_t rival_percent = 0;       // then: of the batches of which another worker has committed a job
  bool has_cache = false;                // of committed rows

  onced::runner::LeaseOptions leases;    // of every type of queued jobs
  Duration execution_max{};              // of a handler that does not hang
  std::uint64_t try_again_percent = 0;   // of the handlers' ends
  std::uint64_t hang_percent = 0;        // of the handlers: their heartbeats end before they do
  std::uint64_t not_started_percent = 0; // of the handlers
  std::uint64_t orphan_percent = 0;      // of the commands that run when the worker crashes: they go on

  std::size_t worker_crashes = 0;
  std::size_t sender_crashes = 0;
  std::size_t busy_times = 0;
  std::size_t outages = 0;
  std::size_t forgeries = 0;

  static Plan drawn(Chance &chance);

  // How long a handler runs after its last heartbeat, if it hangs.
  [[nodiscard]] Duration hang_max() const { return 3 * leases.visibility_timeout; }
  // The longest time from the horizon to the last settlement.
  [[nodiscard]] Duration settling_max() const;
  // The most steps within such a time from the horizon.
  [[nodiscard]] std::uint64_t calm_steps_max(Duration since) const;

private:
  [[nodiscard]] Duration queued_max() const;
};

// Of one silent or busy time, and of one restart.
inline constexpr std::chrono::seconds pause_max{3};
// A sender says hello this often; more often until it is greeted.
inline constexpr std::chrono::seconds hello_interval{5};
inline constexpr std::chrono::milliseconds hello_retry{500};

} // namespace simulation
