#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

struct AuditOptions {
  std::filesystem::path data;                 // the data directory, whether a worker runs on it or not
  std::chrono::milliseconds deadline{10'000}; // for each answer
  std::uint64_t after = 0;                    // only changes after this number
  std::optional<std::uint64_t> limit;         // rows printed at most; none: all
};

// Prints the changes that were made, oldest first, a line each: when, what, to which dead letter, by whom and why.
[[nodiscard]] ExitCode run_audit(const AuditOptions &options, Output &output);

} // namespace onced::tools
