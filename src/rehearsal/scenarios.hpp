#pragma once

#include <cstddef>
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
};

// An outcome as a record tells it: where it is chance which of both a sender is told first, stored and duplicate are
// settled.
[[nodiscard]] std::string told_as(const Scenario &scenario, const std::string &outcome);

[[nodiscard]] std::span<const Scenario> scenarios();
[[nodiscard]] const Scenario *find_scenario(std::string_view name);
[[nodiscard]] std::vector<std::string> scenario_names();

} // namespace onced::rehearsal
