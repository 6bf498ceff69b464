#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "chance.hpp"
#include "events.hpp"
#include "ledger.hpp"
#include "mutation.hpp"
#include "plan.hpp"

namespace simulation {

// How a world is run.
struct RunOptions {
  Mutation mutation = Mutation::none;
  bool wall_jumps = true; // by up to an hour, forwards and back
  bool trace = false;     // a line for every event on stdout
};

// What worlds went through.
struct Tally {
  std::uint64_t steps = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t worker_crashes = 0;
  std::uint64_t sender_crashes = 0;
  std::uint64_t write_failures = 0;
  std::uint64_t resends = 0;
  std::uint64_t settled = 0;
  std::uint64_t told_again = 0; // after a crash between telling and removing
  std::uint64_t conflicts = 0;
  std::uint64_t waits = 0; // accepted and busy
  std::uint64_t ignored_replies = 0;
  std::uint64_t new_boots = 0;
  std::uint64_t full_pipes = 0;
  std::uint64_t hand_overs = 0;          // to handlers
  std::uint64_t given_back = 0;          // leases that no handler saw
  std::uint64_t expired = 0;             // leases
  std::uint64_t late = 0;                // ends of handlers that had lost their lease
  std::uint64_t exhausted = 0;           // jobs whose receives were used up
  std::uint64_t orphans = 0;             // commands that outlived their worker
  std::uint64_t races = 0;               // that a unit of the store has lost
  std::uint64_t committed_elsewhere = 0; // by another worker
  std::uint64_t late_commits = 0;        // of another, between a look-up and its unit

  void add(const Tally &other);
};

// What sender, network and worker share.
struct Context {
  Context(std::uint64_t world_seed, const RunOptions &run);

  RunOptions options;
  std::uint64_t seed;
  Chance chance;
  Plan plan;
  EventQueue events;
  std::vector<Job> jobs;
  Ledger ledger;
  Tally tally;
  onced::MonotonicTime now;
  onced::MonotonicTime quiet_from;   // no fault from then on
  onced::MonotonicTime outage_until; // the network carries nothing
  std::uint64_t fingerprint = 0;     // of all that happened, but not of wall times

  [[nodiscard]] bool calm() const { return now >= quiet_from; }
  [[nodiscard]] bool mutated(Mutation mutation) const { return options.mutation == mutation; }

  [[nodiscard]] std::chrono::microseconds wall_jump() const;
  [[nodiscard]] onced::WallTime wall() const;

  void schedule_in(onced::MonotonicTime::duration delay, const Event &event) { events.schedule(now + delay, event); }

  // The network: loses, repeats, delays, and by that reorders.
  void transmit(const Event &packet);

  void note(std::uint64_t what) { fingerprint = mixed(fingerprint ^ what); }

  template <class... Args> void trace(fmt::format_string<Args...> text, Args &&...args) const {
    if (!options.trace) return;
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now - start).count();
    fmt::print("{:>4}.{:06} ", us / 1'000'000, us % 1'000'000);
    fmt::print(text, std::forward<Args>(args)...);
    fmt::print("\n");
  }

  static constexpr onced::MonotonicTime start{std::chrono::hours(1000)};
};

} // namespace simulation
