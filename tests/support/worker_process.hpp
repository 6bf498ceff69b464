#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/scratch_directory.hpp"
#include "support/command.hpp"
#include "support/process.hpp"

namespace onced::testing {

// A port of 127.0.0.1 that is free, and that no other test takes as long as this object lives.
class OwnPort {
public:
  OwnPort();
  ~OwnPort();
  OwnPort(const OwnPort &) = delete;
  OwnPort &operator=(const OwnPort &) = delete;

  [[nodiscard]] std::string endpoint() const { return "tcp://127.0.0.1:" + std::to_string(number_); }

private:
  int claim_ = -1;
  std::uint16_t number_ = 0;
};

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
  ScratchDirectory directory_;
  std::filesystem::path data_;
  OwnPort jobs_port_;
  OwnPort replies_port_;
  std::string jobs_ = jobs_port_.endpoint();
  std::string replies_ = replies_port_.endpoint();
  std::unique_ptr<Process> process_;
  std::unique_ptr<Line> ready_;
};

} // namespace onced::testing
