#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "base/wake.hpp"
#include "rehearsal/patience.hpp"

namespace onced::rehearsal {

// A process of a scenario, and the leader of a process group, so that Ctrl-C at a terminal reaches this one alone. It
// is killed by the destructor if it still runs; what it has started itself is killed as it ends, unless that has left
// the group. Made, waited for and destroyed by one thread, which must live as long as it.
class Child {
public:
  // Called for each line of its standard output, by a thread of its own.
  using OnLine = std::function<void(Child &, const std::string &)>;
  struct Options {
    std::string role; // what it is in the scenario
    std::vector<std::string> command;
    std::filesystem::path log; // its stderr is appended here
    OnLine on_line;            // empty: lines are kept
  };

  // Throws StageFailure. `patience` must outlive it.
  Child(Options options, const Patience &patience);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  // Writes a line without content to its standard input. Any thread.
  void answer();
  // Sends a signal, while it runs. Any thread.
  void signal(int number);
  // kill -9, and waits for its end.
  void kill_now();

  [[nodiscard]] bool is_running();
  // The first line that it printed. Throws as Patience does, and StageFailure where it ends without one.
  [[nodiscard]] std::string first_line();
  // Waits for its end, and for the end of its output. Throws as Patience does.
  void wait();

  [[nodiscard]] const std::string &role() const { return options_.role; }
  [[nodiscard]] const std::vector<std::string> &command() const { return options_.command; }
  [[nodiscard]] int id() const { return process_.id(); }
  [[nodiscard]] WallTime started_at() const { return started_at_; }

  // Once it has been waited for.
  [[nodiscard]] WallTime ended_at() const { return ended_at_; }
  [[nodiscard]] std::string end() const; // "exit 0", "killed by signal 9"
  [[nodiscard]] bool was_killed() const;
  [[nodiscard]] std::vector<std::string> lines();

private:
  void read_lines();
  void take_line(std::string line);
  [[nodiscard]] bool output_has_ended();
  [[nodiscard]] bool has_printed();
  [[nodiscard]] std::string named(const std::string &what) const;

  Options options_;
  const Patience &patience_;
  WallTime started_at_{};
  WallTime ended_at_{};
  Descriptor input_;
  ChildOutput output_; // of the reader
  Wake stop_reading_;  // who has left the group may keep the output open
  std::thread reader_;

  std::mutex mutex_; // guards the rest
  ChildProcess process_;
  std::optional<ProcessEnd> end_; // it was waited for
  std::vector<std::string> lines_;
  bool output_ended_ = false;
};

} // namespace onced::rehearsal
