#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "support/command.hpp"
#include "support/process.hpp"
#include "support/temp_directory.hpp"

namespace onced::testing {

// `onced serve` on a directory and ports of its own, which stay the same when it is started again.
class WorkerProcess {
public:
  // Chooses the ports; nothing runs yet. `data` is a folder in a temporary directory when it is not given.
  WorkerProcess();
  explicit WorkerProcess(std::filesystem::path data);

  // Starts it and waits until it says that it is ready.
  void start(const Arguments &more = {}, const std::vector<std::string> &wrapper = {});

  // SIGTERM, and waits for the end.
  [[nodiscard]] ExitStatus stop();
  // kill -9, and waits.
  void kill_now() { process_->kill_now(); }

  [[nodiscard]] Process &process() { return *process_; }
  [[nodiscard]] const Line &ready() const { return *ready_; }
  [[nodiscard]] const std::filesystem::path &data() const { return data_; }
  [[nodiscard]] const std::string &jobs() const { return jobs_; }
  [[nodiscard]] const std::string &replies() const { return replies_; }
  [[nodiscard]] Rows rows() const { return count_rows(data_); }

  // The arguments of `send` to it, and `serve` as it is started.
  [[nodiscard]] Arguments send(const Arguments &more = {}) const;
  [[nodiscard]] Arguments serve(const Arguments &more = {}) const;

private:
  TempDirectory directory_;
  std::filesystem::path data_;
  std::string jobs_;
  std::string replies_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<Line> ready_;
};

} // namespace onced::testing
