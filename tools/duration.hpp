#pragma once

#include <chrono>
#include <string_view>

#include "onced/error.hpp"

namespace onced::tools {

// Longer than any wait makes sense, and far from the end of the clock.
inline constexpr std::chrono::hours duration_max{24 * 365};

// "500ms", "60s", "5m" or "2h": a whole number and its unit. Errors: `usage`.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

} // namespace onced::tools
