#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exit_codes.hpp"
#include "output.hpp"

namespace onced::tools {

// Which dead letters are changed, and on whose word.
struct DeadLetterChangeOptions {
  std::filesystem::path data;                 // the data directory, whether a worker runs on it or not
  std::chrono::milliseconds deadline{10'000}; // for each answer
  std::vector<std::string> ids;               // these; or, by exactly one of the two,
  std::string reason;                         // all of this outcome
  std::string type;                           // with a reason: only those of this type; empty: every type
  bool dry_run = false;                       // only print which they are
  std::optional<double> rate;                 // changes a second at most; none: as fast as they go
  std::string by;                             // who, for the audit
  std::string why;
};

// Changes one dead letter after another and prints a line for each. A signal stops it between two. Exit 1 if one was
// not found or is a dead letter still.
[[nodiscard]] ExitCode run_dead_letters_redrive(const DeadLetterChangeOptions &options, Output &output);
[[nodiscard]] ExitCode run_dead_letters_purge(const DeadLetterChangeOptions &options, Output &output);

// "5/s" or "0.5/s". Errors: `usage`.
[[nodiscard]] Result<double> parse_rate(const std::string &text);

} // namespace onced::tools
