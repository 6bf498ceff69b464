#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "onced/error.hpp"

// Numbers with a unit, of the command line and of the configuration file.
namespace onced::tools {

// Longer than any wait makes sense, and far from the end of the clock.
inline constexpr std::chrono::hours duration_max{24 * 365};

// More than any machine has, and far from where sums of sizes wrap round: 1 PiB.
inline constexpr std::uint64_t size_max = std::uint64_t{1} << 50;

// "500ms", "60s", "5m" or "2h": a whole number and its unit. Errors: `usage`.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Bytes: "512MiB", "1GB" or "1048576": a whole number and, in letters of either case, its unit (B; KB, MB, GB, TB of
// 1000; KiB, MiB, GiB, TiB of 1024). Errors: `usage`.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);

} // namespace onced::tools
