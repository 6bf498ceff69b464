#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "onced/error.hpp"
#include "producer.hpp"

namespace onced::bench {

// A worker in a process of its own, on free ports, in a directory that is removed at the end.
class WorkerProcess {
public:
  // Starts `command` serve with `arguments` and waits for its ready line. Errors: `internal`, saying what it printed.
  [[nodiscard]] static Result<WorkerProcess> start(const std::string &command,
                                                   const std::vector<std::string> &arguments);

  [[nodiscard]] int process() const { return process_; }
  [[nodiscard]] const Endpoints &endpoints() const { return endpoints_; }

  // Drains the worker and waits for its end; then counts the results on disk with `command` count.
  // Errors: `internal` when it did not end in order.
  [[nodiscard]] Result<std::size_t> stop_and_count();

  WorkerProcess(WorkerProcess &&other) noexcept;
  WorkerProcess &operator=(WorkerProcess &&) = delete;
  ~WorkerProcess();

private:
  WorkerProcess(std::string command, std::filesystem::path directory);
  Result<void> spawn(const std::vector<std::string> &arguments);
  [[nodiscard]] std::filesystem::path log() const { return directory_ / "worker.log"; }

  std::string command_;
  std::filesystem::path directory_; // empty: moved from
  int process_ = -1;
  std::FILE *output_ = nullptr; // of the worker; open while it runs
  Endpoints endpoints_;
};

} // namespace onced::bench
