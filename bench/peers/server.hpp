#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/child_process.hpp"

// The processes of the peers.
namespace onced::bench::peers {

// A program that a peer stands on is not installed.
struct Missing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A child process, killed when this one ends, however it ends. Output goes to a log.
class ServerProcess {
public:
  // Waits until `ready` says so. Throws with the log where it does not within 30 s. From the main thread: the kernel
  // ends the child with the thread that made it.
  ServerProcess(const std::vector<std::string> &command, int stop_signal, const std::filesystem::path &log,
                const std::function<bool()> &ready);
  ~ServerProcess();
  ServerProcess(const ServerProcess &) = delete;
  ServerProcess &operator=(const ServerProcess &) = delete;

  // Of the process, its children and those that it had.
  [[nodiscard]] std::chrono::nanoseconds cpu() const;

private:
  void stop();

  ChildProcess process_;
  int stop_signal_;
};

// Runs a program to its end. Throws with its log where that is not exit 0.
void run_program(const std::vector<std::string> &command, const std::filesystem::path &log);

// Throws `Missing` where the file is not there.
[[nodiscard]] std::string require_program(const std::filesystem::path &program);

// Makes a folder and writes a file into it.
void make_folder(const std::filesystem::path &folder);
void write_file(const std::filesystem::path &file, const std::string &text);

} // namespace onced::bench::peers
