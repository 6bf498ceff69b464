#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace onced::rehearsal {

// A word as a shell reads it.
[[nodiscard]] inline std::string quoted(const std::string &word) {
  const auto is_plain = [](unsigned char character) {
    return std::isalnum(character) != 0 ||
           std::string_view("_@%+=:,./-{}").find(static_cast<char>(character)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char character : word)
    text.append(character == '\'' ? "'\\''" : std::string(1, character));
  return text + "'";
}

// A command as it would be typed.
[[nodiscard]] inline std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text.append(text.empty() ? "" : " ").append(quoted(word));
  return text;
}

} // namespace onced::rehearsal
