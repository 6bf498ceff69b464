#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "onced/error.hpp"
#include "producer.hpp"

namespace onced::bench {

// A worker in a process of its own, on free endpoints of a transport (transport.hpp), in a directory that is removed at
// the end. It dies with the thread that started it.
class WorkerProcess {
public:
  // Starts `command` serve with `arguments`, its directory in `parent`, and waits for its ready line.
  // Errors: `not_found` and `store_unavailable` for `parent`; `internal`, saying what the worker printed.
  [[nodiscard]] static Result<WorkerProcess>
  start(const std::string &command, const std::vector<std::string> &arguments, const std::string &transport,
        const std::filesystem::path &parent = std::filesystem::temp_directory_path());

  [[nodiscard]] int process() const { return process_; }
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

  WorkerProcess(WorkerProcess &&other) noexcept;
  WorkerProcess &operator=(WorkerProcess &&) = delete;
  ~WorkerProcess();

private:
  WorkerProcess(std::string command, std::filesystem::path directory);
  Result<void> spawn(const std::vector<std::string> &arguments, const std::string &transport);
  [[nodiscard]] std::filesystem::path log() const { return directory_ / "worker.log"; }

  std::string command_;
  std::filesystem::path directory_; // empty: moved from
  int process_ = -1;
  std::FILE *output_ = nullptr; // of the worker; open while it runs
  Endpoints endpoints_;
};

} // namespace onced::bench
