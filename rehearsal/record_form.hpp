#pragma once

#include <string>
#include <vector>

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// Where a record is not of the form of docs/rehearsal-record.md, such as "facts.scenarios[4].seen: is missing"; empty:
// it is, and every key can be asked for without looking.
[[nodiscard]] std::vector<std::string> problems_of_form(const Json &record);

} // namespace onced::rehearsal
