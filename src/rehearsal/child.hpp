#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rehearsal/patience.hpp"

namespace onced::rehearsal {

// A process that this one started. It dies with this one, and is killed by the destructor if it still runs. Made,
// waited for and destroyed by one thread, which must live as long as it: the kernel ties its death to that thread.
class Child {
public:
  // Called for each line of its standard output, by a thread of its own.
  using OnLine = std::function<void(Child &, const std::string &)>;
  struct Options {
    std::string role; // what it is in the scenario
    std::vector<std::string> command;
    std::filesystem::path log; // its stderr is appended here
    OnLine on_line;            // empty: lines are only kept
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

  [[nodiscard]] bool is_running();
  // The first line that it printed. Throws as Patience does, and StageFailure where it ends without one.
  [[nodiscard]] std::string first_line();
  // Waits for its end, and for the end of its output. Throws as Patience does.
  void wait();

  [[nodiscard]] const std::string &role() const { return options_.role; }
  [[nodiscard]] const std::vector<std::string> &command() const { return options_.command; }
  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] WallTime started_at() const { return started_at_; }

  // Once it has been waited for.
  [[nodiscard]] WallTime ended_at() const { return ended_at_; }
  [[nodiscard]] std::string end() const; // "exit 0", "killed by signal 9"
  [[nodiscard]] bool was_killed() const;
  [[nodiscard]] std::vector<std::string> lines();

private:
  void read_lines();
  void end_input();
  [[nodiscard]] std::string named(const std::string &what) const;
  [[nodiscard]] bool output_has_ended();

  Options options_;
  const Patience &patience_;
  int id_ = -1;
  int output_ = -1;
  WallTime started_at_{};
  WallTime ended_at_{};
  std::thread reader_;

  std::mutex mutex_; // guards the rest
  int input_ = -1;
  std::optional<int> status_; // it was waited for
  std::vector<std::string> lines_;
  bool output_ended_ = false;
};

} // namespace onced::rehearsal
