#pragma once

#include <vector>

#include "onced/error.hpp"
#include "rehearsal/plan.hpp"

namespace onced::rehearsal {

// Whether these scenarios of a plan can come out as it says, as far as that is known before anything is started.
// Refused are, for example, a type that nobody handles, a worker that is never killed, a program that is not there, no
// jobs, and counts that no run of the scenario can give. Errors: `configuration`, with the plan's file and the
// scenario.
[[nodiscard]] Result<void> check_plan(const Plan &plan, const std::vector<ScenarioPlan> &scenarios);

} // namespace onced::rehearsal
