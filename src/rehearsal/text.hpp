#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// A command as it would be typed.
[[nodiscard]] inline std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) {
    const bool plain = word.find_first_of(" \"'$\\*") == std::string::npos;
    text.append(text.empty() ? "" : " ").append(plain ? word : "'" + word + "'");
  }
  return text;
}

// Null where there is no text.
[[nodiscard]] inline Json null_or(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

} // namespace onced::rehearsal
