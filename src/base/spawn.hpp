#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>
#include <unistd.h>

// The one place where processes are made. Whoever starts one uses child_process.hpp.
namespace onced {

using EnvironmentVariables = std::map<std::string, std::string>;

// A program to be started, and all that it gets.
struct Program {
  // The program and its arguments. No shell reads them. A program without a slash is looked for in the PATH of its
  // environment, or in the system's usual folders where that has none.
  std::vector<std::string> words;
  std::optional<EnvironmentVariables> environment; // nothing: this process's
  // The files that become its standard streams. One that is not open is closed there.
  int input = STDIN_FILENO;
  int output = STDOUT_FILENO;
  int errors = STDERR_FILENO;
  int kept = -1; // one more that it has, under a number from 100 up: no script gives a file of its own such a number
  std::optional<std::uint64_t> descriptors_max = {}; // its soft limit of open files; nothing: this process's
};

// The environment of this process.
[[nodiscard]] EnvironmentVariables own_environment();

// Starts it as the leader of a process group of its own, to be killed when the calling thread ends. With no other
// descriptor, no blocked and no ignored signal. The error is an errno.
[[nodiscard]] tl::expected<pid_t, int> spawn(const Program &program);

// Starts a copy of this process that does `work`, and ends with its result as exit code and without what `exit` does.
// It is killed when the calling thread ends. Only that thread exists in it, so no other may hold what `work` needs. The
// error is an errno.
[[nodiscard]] tl::expected<pid_t, int> spawn_copy(const std::function<int()> &work);

} // namespace onced
