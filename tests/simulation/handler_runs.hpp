#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chance.hpp"
#include "ledger.hpp"
#include "onced/clock.hpp"
#include "onced/fencing_token.hpp"
#include "runner/leases.hpp"

namespace simulation {

// Which handlers of queued jobs run in truth, whatever the worker believes, and how often they have run. The calls
// throw `Broken` where a hand-over breaks a rule. It outlives the worker's crashes.
class HandlerRuns {
public:
  using Time = onced::MonotonicTime;

  struct Run {
    onced::FencingToken token;
    bool is_command = false; // a process, which holds the lock of its job; not a function of the worker
    Time ends;
    Time lease_until{};
  };

  explicit HandlerRuns(const onced::runner::LeaseOptions &options) : options_(options) {}

  void on_taken(const onced::FencingToken &token);
  void on_started(std::size_t key, Run run, Time now);
  void on_heartbeat(std::size_t key, const onced::FencingToken &token, Time now);
  void on_expired(std::size_t key, const onced::FencingToken &token, Time now) const;
  void on_ended(std::size_t key, const onced::FencingToken &token, bool has_lease, Time now);
  // Of the worker. Returns how many of its commands outlive it.
  std::size_t on_crash(const Ledger &ledger, std::uint64_t orphan_percent, Chance &chance, Time now);
  // The job fails for want of receives.
  void on_given_up(std::size_t key) const;

  [[nodiscard]] bool is_running(std::size_t key, Time now) const;

private:
  struct OfKey {
    std::vector<Run> running;
    std::uint32_t runs = 0;
    std::uint32_t lost = 0;         // receives that no handler saw, as the worker crashed
    onced::FencingToken seen_token; // of the last one that is counted in either
  };

  [[nodiscard]] std::size_t leases_of_type(bool is_command, Time now) const;

  onced::runner::LeaseOptions options_;
  std::array<OfKey, Ledger::keys_max> keys_;
  onced::FencingToken newest_;
};

} // namespace simulation
