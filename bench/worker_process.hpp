#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/scratch_directory.hpp"
#include "onced/error.hpp"
#include "producer.hpp"

namespace onced::bench {

// A worker in a process of its own, on free endpoints of a transport (transport.hpp), in a directory that is removed at
// the end. It dies with the thread that started it.
class WorkerProcess {
public:
  // Starts `command` serve with `arguments`, its directory in `parent` or among the temporary files, and waits for its
  // ready line. Errors: `not_found` and `store_unavailable` for `parent`; `internal`, saying what the worker logged.
  [[nodiscard]] static Result<WorkerProcess> start(const std::string &command,
                                                   const std::vector<std::string> &arguments,
                                                   const std::string &transport,
                                                   const std::filesystem::path &parent = {});

  [[nodiscard]] const ChildProcess &process() const { return process_; }
  [[nodiscard]] const Endpoints &endpoints() const { return endpoints_; }

  // What it has counted since its start, as `stats` says it (docs/operations.md).
  struct Counters {
    std::uint64_t deliveries = 0;
    std::uint64_t batches = 0;
    std::uint64_t commits = 0;
    std::uint64_t log_syncs = 0;
  };
  [[nodiscard]] Result<Counters> counters() const;

  struct Rows {
    std::size_t results = 0;
    std::size_t dead_letters = 0;
  };
  // Drains the worker and waits for its end; then counts the rows on disk with `command` count.
  // Errors: `internal` when it did not end in order.
  [[nodiscard]] Result<Rows> stop_and_count();

private:
  WorkerProcess(std::string command, ScratchDirectory directory);
  Result<void> spawn(const std::vector<std::string> &arguments, const std::string &transport);
  [[nodiscard]] std::filesystem::path log() const { return directory_.path() / "worker.log"; }

  std::string command_;
  ScratchDirectory directory_;
  ChildOutput output_; // of the worker; it stays open while that runs
  ChildProcess process_;
  Endpoints endpoints_;
};

} // namespace onced::bench
