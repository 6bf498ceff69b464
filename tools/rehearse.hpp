#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

struct RehearseOptions {
  std::filesystem::path plan; // one of this, list, verify, rerun and review
  bool list = false;
  std::filesystem::path verify; // a record's directory
  std::filesystem::path rerun;  // likewise
  bool run_commands = false;    // of the rerun: its commands may be run
  std::filesystem::path review; // likewise; with the next three
  std::string by;
  std::string decision;
  std::string note;
  std::filesystem::path out; // empty: PLAN's folder's name and ".record"
  std::string only;
  std::uint64_t seed = 1;
  bool fast = false;
};

// Plays a plan and writes its record; or lists the scenarios, verifies a record, plays a record's plan again and
// compares, or writes a review into a record. ExitCode::no: a scenario failed, a record does not fit together, or a
// fact differs.
[[nodiscard]] ExitCode run_rehearse(const RehearseOptions &options, Output &output);

} // namespace onced::tools
