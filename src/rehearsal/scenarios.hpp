#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// A scenario that is built in.
struct Scenario {
  std::string_view name;
  std::string_view title;
  std::string_view kill_point;      // empty: nothing is killed at a step
  std::string_view foreign_obstacle; // why someone else's worker cannot be put through it; empty: it can
  std::string_view guard;            // of the unguarded worker that is played with, as a control; empty: no control
  // Plays it, up to where every sender has ended; the worker is stopped by the caller. Throws StageFailure.
  void (*play)(Stage &stage);
};

[[nodiscard]] std::span<const Scenario> scenarios();
[[nodiscard]] const Scenario *find_scenario(std::string_view name);
[[nodiscard]] std::vector<std::string> scenario_names();

} // namespace onced::rehearsal
