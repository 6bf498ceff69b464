#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "base/descriptor.hpp"
#include "base/spawn.hpp"
#include "onced/clock.hpp"

namespace onced {

// How a process ended.
class ProcessEnd {
public:
  // As waitpid tells it; nothing: somebody else waited for it.
  explicit ProcessEnd(std::optional<int> status) : status_(status) {}

  [[nodiscard]] std::optional<int> exit_code() const;
  [[nodiscard]] std::optional<int> signal() const; // that killed it
  [[nodiscard]] bool is_success() const { return exit_code() == 0; }
  [[nodiscard]] bool is_kill() const; // by SIGKILL
  // "exit code 1" or "killed by signal 9".
  [[nodiscard]] std::string text() const;

private:
  std::optional<int> status_;
};

// A process that this one has started. It is killed when the thread that started it ends, so also when this process
// ends in any way. Used by one thread, but for `signal`, which any thread may call while no other calls `wait`.
// Nobody else may wait for this process's children.
class ChildProcess {
public:
  ChildProcess() = default; // none
  // Both as in spawn.hpp. The errors are an errno.
  [[nodiscard]] static tl::expected<ChildProcess, int> start(const Program &program);
  [[nodiscard]] static tl::expected<ChildProcess, int> start_copy(const std::function<int()> &work);
  // Kills it and its process group, if it was not waited for.
  ~ChildProcess();
  ChildProcess(ChildProcess &&other) noexcept;
  ChildProcess &operator=(ChildProcess &&other) noexcept;

  [[nodiscard]] pid_t id() const { return id_; }
  // A file that becomes readable when it has ended; -1 where the kernel gives none (before 5.3, some sandboxes).
  [[nodiscard]] int end_file() const { return end_file_.number(); }

  // None does anything once it was waited for.
  void signal(int number) const;
  void signal_group(int number) const;
  // kill -9 to its group and, as it may have left that, to it.
  void kill() const;

  // Whether it has ended. It is still to be waited for, so its number is nobody else's.
  [[nodiscard]] bool has_ended() const;
  // Waits until it has ended, or until the deadline: then false.
  [[nodiscard]] bool ends_before(MonotonicTime deadline) const;
  // Waits for its end. What is left of its process group is killed then. Later calls return the same.
  ProcessEnd wait();
  [[nodiscard]] bool was_waited_for() const { return end_.has_value(); }

private:
  explicit ChildProcess(pid_t id);

  pid_t id_ = -1; // -1: none
  Descriptor end_file_;
  std::optional<ProcessEnd> end_;
};

// What can be read from a pipe at once. Whoever else has it may go on writing.
[[nodiscard]] std::size_t bytes_waiting(const Descriptor &pipe);

// Appends at most `bytes_max` bytes, and returns how many. At the end of the pipe it closes it and returns 0. It waits
// for the first byte.
std::size_t read_some(Descriptor &pipe, std::size_t bytes_max, Bytes &to);

// How long one poll may wait.
[[nodiscard]] int poll_timeout(MonotonicTime deadline, MonotonicTime now);

// What a child prints into a pipe.
class ChildOutput {
public:
  ChildOutput() = default;
  // Before it reads on, it drops what is beyond `unread_bytes_max` and nobody has taken.
  explicit ChildOutput(Descriptor pipe, std::size_t unread_bytes_max = std::string::npos)
      : pipe_(std::move(pipe)), unread_bytes_max_(unread_bytes_max) {}

  // Waits until there is more, and reads it. False at the deadline, and once `interrupt` is readable.
  [[nodiscard]] bool read(MonotonicTime deadline, int interrupt = -1);
  [[nodiscard]] bool has_ended() const { return !pipe_.is_open(); }
  // A line that has been read, without its end.
  [[nodiscard]] std::optional<std::string> take_line();
  // All that has been read.
  [[nodiscard]] std::string take_rest();
  // Waits for a line; nothing at the end of the output and at the deadline.
  [[nodiscard]] std::optional<std::string> next_line(MonotonicTime deadline);
  // Waits for the end of the output. Nothing at the deadline.
  [[nodiscard]] std::optional<std::string> rest(MonotonicTime deadline);

private:
  Descriptor pipe_;
  std::size_t unread_bytes_max_ = std::string::npos;
  std::string unread_;
  std::size_t searched_ = 0; // so much of it has no end of a line
};

// A file to be written to at its end, which is made where there is none. Not open where that cannot be.
[[nodiscard]] Descriptor open_log(const std::filesystem::path &path);
// Has nothing to read, and takes what nobody wants.
[[nodiscard]] Descriptor open_null();

} // namespace onced
