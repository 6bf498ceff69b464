#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace onced::rehearsal {

// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

// Discarded where it is no JSON, where it nests deeper than a job may and so than anything here (whatever parses,
// copies, compares or writes JSON recurses), and where it holds more than `json_values_max` values.
[[nodiscard]] Json parse_json(std::string_view text);

// A text of an object; empty: it is not there, or no text.
[[nodiscard]] inline std::string text_in(const Json &object, const char *name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

// Null where there is no text.
[[nodiscard]] inline Json null_or(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

} // namespace onced::rehearsal
