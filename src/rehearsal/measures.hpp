#pragma once

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// The measures of a record, each with its denominator and window, from its scenarios: those of `facts` and, in the same
// order, those of `observed`.
[[nodiscard]] Json measures_of(const Json &facts_scenarios, const Json &observed_scenarios);

} // namespace onced::rehearsal
