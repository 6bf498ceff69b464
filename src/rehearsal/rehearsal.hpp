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

// Told of each scenario as it has ended: its part of the facts.
using OnScenario = std::function<void(const Json &facts)>;

// Plays the scenarios of a plan, each in a directory of its own below `out`, with processes that end with this one, and
// returns the record (docs/rehearsal-record.md), of which nothing is written yet. A scenario that fails is a row of the
// record, not an error. Errors: those of the plan; `usage`: the plan has no scenario `only`, or `out` is not empty;
// `store_unavailable`: `out` cannot be written to. The calling thread must outlive the call's processes, so it is the
// program's main thread.
[[nodiscard]] Result<Json> rehearse(const RehearsalOptions &options, const Plan &plan, Clock &clock,
                                    const OnScenario &on_scenario);

} // namespace onced::rehearsal
