#include "duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

namespace onced::tools {

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> units{
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  std::int64_t number = 0;
  const char *end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const auto &[unit, factor] : units) {
    if (failure != std::errc{} || number < 0 || suffix != unit) continue;
    const std::int64_t number_max = std::chrono::milliseconds(duration_max).count() / factor;
    if (number <= number_max) return std::chrono::milliseconds(number * factor);
  }
  return tl::unexpected(Error{ErrorCode::usage, "'" + std::string(text) + "'", "not a duration of up to a year",
                              "write a whole number and its unit: 500ms, 60s, 5m or 2h"});
}

} // namespace onced::tools
