#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "base/numbers.hpp"

// Checks for options that are numbers. CLI11 by itself takes " 1", 0x10 and 010, turns -1 into 2^64-1, and lets a NaN
// through its ranges.
namespace onced::bench {

namespace detail {

inline std::string problem_of(const Error &error) {
  return error.concerns + ": " + error.cause;
}

} // namespace detail

// In decimal digits, from `least` to `most`, which the help says.
[[nodiscard]] inline CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  const auto check = [=](const std::string &text) {
    const auto number = parse_whole(text, least, most);
    return number ? std::string() : detail::problem_of(number.error());
  };
  return {check, std::to_string(least) + " to " + std::to_string(most)};
}

// The same for a number such as 0.25.
[[nodiscard]] inline CLI::Validator decimal(double least, double most) {
  const auto check = [=](const std::string &text) {
    const auto number = parse_decimal(text, least, most);
    return number ? std::string() : detail::problem_of(number.error());
  };
  return {check, CLI::detail::to_string(least) + " to " + CLI::detail::to_string(most)};
}

// For a size with its unit: CLI::AsSizeValue passes over blanks. A transformation, so that it may stand before that
// one.
[[nodiscard]] inline CLI::Validator without_blanks() {
  const auto check = [](const std::string &text) {
    return text.find_first_of(" \t\n\r\f\v") == std::string::npos ? std::string() : "'" + text + "' has blanks";
  };
  return {check, ""};
}

} // namespace onced::bench
