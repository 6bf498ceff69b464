#pragma once

#include <csignal>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/child_process.hpp"
#include "support/eventually.hpp"

namespace onced::testing {

// How a process ended. Compares as its exit code; shown with what was run and what it said on stderr.
struct ExitStatus {
  int code = -1;  // -1: it was killed
  int signal = 0; // that killed it
  std::string story;

  bool operator==(int other) const { return code == other; }
};
std::ostream &operator<<(std::ostream &out, const ExitStatus &status);

// The command `onced` as a process of its own, with what a test needs to feed, watch and end it. Whatever takes longer
// than `patience` is thrown as an error that shows the process's stderr. Used by one thread.
class Process {
public:
  enum class Output { captured, closed, full_device };
  struct Options {
    std::vector<std::string> arguments;
    std::optional<std::string> input = ""; // standard input; none: a pipe, to be written to
    Output output = Output::captured;
    std::vector<std::string> wrapper{}; // a command that runs it and becomes it: a full path, and arguments
  };

  explicit Process(const Options &options);
  // Kills it, if it still runs.
  ~Process() = default;
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  // Writes to the pipe that is its standard input. `end_input` closes it.
  void write_input(std::string_view text);
  void end_input();

  // The next line of its standard output, without its end; nothing at the end of the output.
  [[nodiscard]] std::optional<std::string> next_line();
  // All that is left of its standard output.
  [[nodiscard]] std::string rest_of_output();
  // What it has said on stderr so far.
  [[nodiscard]] std::string errors() const;

  // Sends a signal, while it has not been waited for.
  void signal(int number) const;
  [[nodiscard]] bool is_running();
  // Waits for its end.
  [[nodiscard]] ExitStatus wait();
  // kill -9, and waits.
  void kill_now();

  [[nodiscard]] pid_t id() const { return process_.id(); }

private:
  [[nodiscard]] std::string story() const;
  [[noreturn]] void give_up(const std::string &waited_for) const;

  std::string command_line_;
  Descriptor input_;
  ChildOutput output_;
  Descriptor errors_; // a file
  ChildProcess process_;
};

} // namespace onced::testing
