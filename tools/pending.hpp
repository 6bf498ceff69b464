#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "exit_codes.hpp"
#include "get.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

struct PendingListOptions {
  QueryTarget target;
  bool held_only = false;             // only those that wait for their owner
  std::string type;                   // empty: every type
  std::optional<std::uint64_t> limit; // rows printed at most; none: all
};

// Prints the queued jobs in the order of their keys, a row a line, without their bytes. Exit code `data` where rows are
// damaged, after all others.
[[nodiscard]] ExitCode run_pending_list(const PendingListOptions &options, Output &output);

struct PendingShowOptions {
  QueryTarget target;
  JobAddress job;
};

// Prints one queued job with everything that is kept of it; exit 1 where there is none.
[[nodiscard]] ExitCode run_pending_show(const PendingShowOptions &options, Output &output);

struct PendingResolveOptions {
  std::filesystem::path data;                 // the data directory, whether a worker runs on it or not
  std::chrono::milliseconds deadline{10'000}; // for the answer
  JobAddress job;
  std::optional<std::string> applied; // exactly one of the two: the result, as JSON;
  bool absent = false;                // there was no effect
  std::string by;                     // who, for the audit
  std::string why;
};

// Says what became of the effect of a job that is held, and prints a line; exit 1 where none is held.
[[nodiscard]] ExitCode run_pending_resolve(const PendingResolveOptions &options, Output &output);

} // namespace onced::tools
