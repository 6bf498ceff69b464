#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "json_value.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"

namespace onced::tools {

// Where a query is answered: by exactly one of the two.
struct QueryTarget {
  std::optional<std::filesystem::path> data; // the data directory, whether a worker runs on it or not
  std::optional<std::string> replies;        // the replies endpoint of a worker
  std::chrono::milliseconds deadline{10'000};
};

// Asks one read-only query of docs/protocol.md. In the answer, binaries are binaries. Errors: `usage` (no target, or
// both), `timed_out`, those of the store and of the wire, and what the worker answered.
[[nodiscard]] Result<Json> run_query(const QueryTarget &target, std::string_view name, const Json &arguments,
                                     MonotonicTime deadline);

// The answer as it is printed: times "…_at_us" as ISO 8601 UTC under "…_at", unknown ones null; binaries in
// hexadecimal; "result", where it is MessagePack bytes, as the value; empty ids null.
[[nodiscard]] Json for_people(const Json &row);

// "2026-01-31T12:00:00.000000Z" of microseconds since 1970; null for 0, and the number itself outside years 1 to 9999.
[[nodiscard]] Json iso_time(std::int64_t microseconds);

} // namespace onced::tools
