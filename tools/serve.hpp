#pragma once

#include <filesystem>
#include <vector>

#include "console_log.hpp"
#include "exit_codes.hpp"
#include "onced/worker.hpp"

namespace onced::tools {

struct ServeOptions {
  WorkerOptions worker;
  std::vector<QueuedType> handlers; // beside those that come with onced
  LogFormat log_format = LogFormat::text;
  std::filesystem::path events; // each step of each delivery is written here; empty: none
  bool allow_core = false;      // leaves core dumps and debuggers to the system's settings
};

// Runs a worker until a signal drains it or its store fails. Its two lines go to standard output, whose reader holds up
// neither the worker nor its end.
[[nodiscard]] ExitCode run_serve(const ServeOptions &options);

} // namespace onced::tools
