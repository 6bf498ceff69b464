#include "base/numbers.hpp"

#include <array>
#include <charconv>
#include <string>

namespace onced {
namespace {

// The shortest that reads back as the same.
template <class Number> std::string text_of(Number number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

bool begins_with_digit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

template <class Number> Result<Number> parse(std::string_view text, Number least, Number most, std::string_view kind) {
  Number number{};
  const char *const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  // The comparison is false for a NaN.
  if (begins_with_digit(text) && failure == std::errc{} && rest == end && number >= least && number <= most)
    return number;
  return tl::unexpected(Error{ErrorCode::usage, "'" + std::string(text) + "'",
                              "not a " + std::string(kind) + " from " + text_of(least) + " to " + text_of(most), ""});
}

} // namespace

Result<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most) {
  return parse<std::uint64_t>(text, least, most, "whole number");
}

Result<double> parse_decimal(std::string_view text, double least, double most) {
  return parse<double>(text, least, most, "number");
}

} // namespace onced
