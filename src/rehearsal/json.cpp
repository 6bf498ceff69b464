#include "rehearsal/json.hpp"

#include <algorithm>
#include <cstddef>

#include "onced/limits.hpp"

namespace onced::rehearsal {
namespace {

// How deep the text nests at most, if it is JSON.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t depth_max = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (in_string && character == '\\') {
      ++at;
    } else if (character == '"') {
      in_string = !in_string;
    } else if (!in_string && (character == '[' || character == '{')) {
      depth_max = std::max(depth_max, ++depth);
    } else if (!in_string && (character == ']' || character == '}') && depth > 0) {
      --depth;
    }
  }
  return depth_max;
}

} // namespace

Json parse_json(std::string_view text) {
  if (depth_of(text) > limits::nesting_max) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

} // namespace onced::rehearsal
