#pragma once

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

// Prints what this program is: for people, or as one JSON object.
[[nodiscard]] ExitCode run_version(bool json, Output &output);

} // namespace onced::tools
