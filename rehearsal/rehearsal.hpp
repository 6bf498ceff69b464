#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"

namespace onced::rehearsal {

struct RehearsalOptions {
  std::filesystem::path plan;
  std::filesystem::path out; // the record's directory: absent or empty
  std::string only;          // one scenario; empty: all of the plan
  std::uint64_t seed = 1;
  bool fast = false;
  std::string command; // onced itself
};

// What the program that rehearses knows of itself.
struct Surroundings {                // NOLINT(bugprone-exception-escape): a Json moves without exceptions
  Json ran_as;                       // account_of_process(), before it entered mounts of its own
  std::string mounts_obstacle;       // of enter_own_mounts()
  std::function<bool()> interrupted; // whether to end early
};

// Told of each scenario as it begins, and of its part of the facts as it has ended.
struct Progress {
  std::function<void(const std::string &scenario)> begins;
  std::function<void(const Json &facts)> ended;
};

// Whether a scenario that would be played needs mounts of our own.
[[nodiscard]] bool needs_mounts(const Plan &plan, const std::string &only);

// Plays the scenarios of a plan, each in a directory of its own below `out`, with processes that end with this one, and
// returns the record (docs/rehearsal-record.md), of which nothing is written yet. A scenario that fails is a row of the
// record, not an error. Errors: `usage`: the plan has no scenario `only`, or `out` is not empty; `configuration`: those
// of `check_plan`; `store_unavailable`: `out` cannot be written to; `timed_out`: it was
// interrupted, and nothing is left of it. The calling thread must outlive the call's processes, so it is the program's
// main thread.
[[nodiscard]] Result<Json> rehearse(const RehearsalOptions &options, const Surroundings &surroundings, const Plan &plan,
                                    Clock &clock, const Progress &progress);

} // namespace onced::rehearsal
