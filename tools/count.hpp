#pragma once

#include "exit_codes.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

struct CountOptions {
  QueryTarget target;
};

// Prints how many rows there are, counted by scanning.
[[nodiscard]] ExitCode run_count(const CountOptions &options, Output &output);

} // namespace onced::tools
