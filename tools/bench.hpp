#pragma once

#include <filesystem>

#include "exit_codes.hpp"
#include "onced/store.hpp"
#include "output.hpp"

namespace onced::tools {

struct BenchOptions {
  bool quick = false; // fewer deliveries, once: under a minute
  std::filesystem::path directory = ".";
  Durability durability = Durability::fsync;
  unsigned workers = 2;
};

// Measures this program on the disk of a directory by share of duplicates: a worker in a process of its own for each
// run, in a fresh data directory that is removed. A table on stderr; where stdout is no terminal, a JSON line a run
// there. A run whose counts are not exact is void and ends it with ExitCode::internal.
[[nodiscard]] ExitCode run_bench(const BenchOptions &options, Output &output);

} // namespace onced::tools
