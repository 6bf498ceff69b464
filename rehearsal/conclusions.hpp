#pragma once

#include <string>

#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"

// The parts of a record (docs/rehearsal-record.md) that follow from others. Whoever makes a record and whoever verifies
// it draws them in the same way.
namespace onced::rehearsal {

// How long a sender waits for a late reply before it sends again: --fast takes a fifth.
[[nodiscard]] std::chrono::milliseconds visibility_timeout_of(const WorkerPlan &worker, bool fast);

// Of `facts`, what the plan and its seeds say: `plan`, `seeds`, `side_effect`, `worker`.
[[nodiscard]] Json facts_of_plan(const Plan &plan, bool fast);

// `counts` and `verdict`, by the status of each scenario of `facts`.
[[nodiscard]] Json counts_of_scenarios(const Json &facts_scenarios);
[[nodiscard]] std::string verdict_of(const Json &counts);

// `failing_insert`: the first delivery whose transaction found its key present, as its log says. Someone else's worker
// says no such thing: of it the first delivery that was told so. Null: there is none.
[[nodiscard]] Json failing_insert_of(const Json &facts_scenarios, const Json &observed_scenarios);

// `measures`, each with its denominator and window. The scenarios of `observed` are in the order of those of `facts`.
[[nodiscard]] Json measures_of(const Json &facts_scenarios, const Json &observed_scenarios);

} // namespace onced::rehearsal
