#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// So many jobs of a burst are in flight at most, and so in the worker's hands.
inline constexpr std::size_t burst_window_jobs = 64;

// A scenario that is built in.
struct Scenario {
  std::string_view name;
  std::string_view title;
  // Plays it, up to where every sender has ended; the worker is stopped by the caller. Throws as a stage does.
  void (*play)(Stage &stage) = nullptr;
  std::string_view kill_point = {};       // empty: nothing is killed at a step
  std::string_view foreign_obstacle = {}; // why someone else's worker cannot be put through it; empty: it can
  std::string_view guard = {};     // of the unguarded worker that is played with, as a control; empty: no control
  bool may_be_told_either = false; // stored or duplicate, by chance: both count as settled
  bool has_backlog = false;        // its record shows how the backlog rises and drains
  bool needs_mounts = false;       // it needs mounts of our own
  bool needs_handler = false;      // its jobs are queued, and its plan has a handler
  bool has_provider = false;       // its effects are those that the provider of its handler has written down
  std::string_view risk = {};      // why a double effect is no failure of it; empty: it is one
  bool makes_types = false;        // its jobs are made of the seeds, with types of their own
  // How many outcomes its senders are told if everything settles, of so many jobs and copies. Null: that is chance.
  std::uint64_t (*told)(std::uint64_t jobs, std::uint64_t copies) = [](std::uint64_t jobs, std::uint64_t) {
    return jobs;
  };
  // How many ids of their own each seed is sent under.
  std::uint64_t (*ids)(std::uint64_t copies) = [](std::uint64_t) -> std::uint64_t { return 1; };
  // How many jobs the first worker must have committed when it is killed; 0: it is not killed so.
  std::size_t (*killed_at)(std::size_t jobs) = [](std::size_t) -> std::size_t { return 0; };
};

// So many jobs make sure that a full disk is noticed: the last page of the log holds the rows of some dozens.
inline constexpr std::size_t store_unavailable_jobs_min = 200;

// An outcome as a record tells it: where it is chance which of both a sender is told first, stored and duplicate are
// settled.
[[nodiscard]] std::string told_as(const Scenario &scenario, const std::string &outcome);

// How many jobs of the seeds a scenario sends under keys of their own, and so how many effects there are if each job
// has one. Of a control: how many ids there are.
[[nodiscard]] std::uint64_t jobs_of(const Scenario &scenario, const Seeds &seeds, unsigned copies);

[[nodiscard]] std::span<const Scenario> scenarios();
[[nodiscard]] const Scenario *find_scenario(std::string_view name);
[[nodiscard]] std::vector<std::string> scenario_names();

} // namespace onced::rehearsal
