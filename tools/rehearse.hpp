#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

struct RehearseOptions {
  std::filesystem::path plan; // one of this and the next three
  bool list = false;
  std::filesystem::path verify; // a record's directory
  std::filesystem::path rerun;  // likewise
  std::filesystem::path out;    // empty: PLAN's folder's name and ".record"
  std::string only;
  std::uint64_t seed = 1;
  bool fast = false;
};

// Plays a plan and writes its record; or lists the scenarios, verifies a record, or plays a record's plan again and
// compares. ExitCode::no: a scenario failed, a record does not fit together, or a fact differs.
[[nodiscard]] ExitCode run_rehearse(const RehearseOptions &options, Output &output);

} // namespace onced::tools
