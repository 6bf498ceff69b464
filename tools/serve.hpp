#pragma once

#include <filesystem>
#include <vector>

#include "console_log.hpp"
#include "exit_codes.hpp"
#include "onced/worker.hpp"
#include "output.hpp"

namespace onced::tools {

struct ServeOptions {
  WorkerOptions worker;
  std::vector<QueuedType> handlers; // beside those that come with onced
  LogFormat log_format = LogFormat::text;
  std::filesystem::path events; // each step of each delivery is written here; empty: none
};

// Runs a worker until a signal drains it or its store fails.
[[nodiscard]] ExitCode run_serve(const ServeOptions &options, Output &output);

} // namespace onced::tools
