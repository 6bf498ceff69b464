#pragma once

#include <chrono>
#include <filesystem>

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

struct VerifyOptions {
  std::filesystem::path data;                    // the data directory, whether a worker runs on it or not
  std::chrono::milliseconds deadline{3'600'000}; // for a worker's answer, which takes as long as its scan
};

// Prints each problem that is found, a line each, then a line of what was looked at. Exit code `data` where there is a
// problem.
[[nodiscard]] ExitCode run_verify(const VerifyOptions &options, Output &output);

} // namespace onced::tools
