#include "rehearsal/json.hpp"

#include <cstddef>

#include "onced/limits.hpp"
#include "rehearsal/limits.hpp"

namespace onced::rehearsal {
namespace {

// Whether the text, if it is JSON, nests no deeper and holds no more values than we parse. A comma, a bracket and a
// brace begin one value at most.
bool is_within_limits(std::string_view text) {
  std::size_t depth = 0;
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (in_string && character == '\\') {
      ++at;
    } else if (character == '"') {
      in_string = !in_string;
    } else if (!in_string && (character == '[' || character == '{')) {
      ++values;
      if (++depth > limits::nesting_max) return false;
    } else if (!in_string && (character == ']' || character == '}') && depth > 0) {
      --depth;
    } else if (!in_string && character == ',') {
      ++values;
    }
  }
  return values <= json_values_max;
}

} // namespace

Json parse_json(std::string_view text) {
  if (!is_within_limits(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

} // namespace onced::rehearsal
