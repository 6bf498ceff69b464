#pragma once

#include <string>

#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"
#include "rehearsal/record.hpp"

// A record for tests, and what is wrong with one.
namespace onced::rehearsal {

[[nodiscard]] Plan small_plan();
// Of that plan: a job that was stored, one that was found by its second delivery after a kill, a scenario that was
// skipped, and a control.
[[nodiscard]] Json small_record();
// Of a scenario alone whose job was accepted, had its effect at a provider, and was answered later. Changes the plan to
// one of it.
[[nodiscard]] Json record_of_provider(Plan &plan, const std::string &scenario);

// Parts of an observation.
[[nodiscard]] std::string at_second(unsigned second);
[[nodiscard]] Json row_of(const std::string &scenario, unsigned attempt, unsigned published, const Json &outcome);
[[nodiscard]] Json entry(const std::string &what, unsigned second, const Json &operation_id, const Json &attempt);
[[nodiscard]] Json observed_of(const std::string &scenario, const Json &rows);

// The problems of a record that was written whole, a line each.
[[nodiscard]] std::string problems_of(const Json &record, const Plan &plan = small_plan());

// An edit of a value, and the beginning of a problem that must name its place.
struct Edit {
  std::string pointer;
  Json value;
  std::string problem;
};

} // namespace onced::rehearsal
