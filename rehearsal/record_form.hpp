#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// Of the form of docs/rehearsal-record.md.
inline constexpr unsigned record_version = 3;

// What a reviewer decides.
inline constexpr std::string_view decision_accepted = "accepted";
inline constexpr std::string_view decision_rejected = "rejected";

// The content of record.json: the same record gives the same bytes.
[[nodiscard]] std::string text_of(const Json &record);

// The rows of evidence of all scenarios, in their order.
[[nodiscard]] std::vector<Json> evidence_of(const Json &record);

// Where a record is not of the form of docs/rehearsal-record.md, such as "facts.scenarios[4].seen: is missing"; empty:
// it is, and every key can be asked for without looking.
[[nodiscard]] std::vector<std::string> problems_of_form(const Json &record);

} // namespace onced::rehearsal
