#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "onced/limits.hpp"

namespace onced::rehearsal {

// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

// Discarded where it is no JSON, or nests deeper than a job may and so than anything here: whatever copies, compares or
// writes JSON recurses.
[[nodiscard]] inline Json parse_json(std::string_view text) {
  bool is_deep = false;
  Json value = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json &) {
        is_deep = is_deep || depth > static_cast<int>(limits::nesting_max);
        return !is_deep;
      },
      false);
  return is_deep ? Json(Json::value_t::discarded) : value;
}

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
