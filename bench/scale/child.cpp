#include "child.hpp"

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_signals.hpp"

extern char **environ;

namespace onced::bench::scale {
namespace {

// main.cpp reads these.
std::vector<std::string> command_of(const Setting &setting, const ChildTask &task) {
  std::vector<std::string> words{"/proc/self/exe",
                                 "--child",
                                 task.name,
                                 "--child-of",
                                 std::to_string(::getpid()),
                                 "--child-data",
                                 task.data.string(),
                                 "--child-first",
                                 std::to_string(task.first),
                                 "--child-end",
                                 std::to_string(task.end),
                                 "--seed",
                                 std::to_string(setting.seed),
                                 "--memory",
                                 std::to_string(setting.memory_bytes)};
  if (task.count_rows) words.emplace_back("--child-count");
  return words;
}

int spawn(std::vector<std::string> words, int output) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // The signals that this program holds back are not held back there.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none{};
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int process = -1;
  const int error = ::posix_spawn(&process, arguments.front(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("this program cannot be started again");
  return process;
}

} // namespace

Child::Child(const Setting &setting, const ChildTask &task) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  output_ = ::fdopen(pipe[0], "r");
  try {
    process_ = spawn(command_of(setting, task), pipe[1]);
  } catch (...) {
    ::close(pipe[1]);
    std::fclose(output_);
    throw;
  }
  ::close(pipe[1]);
}

Child::~Child() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::fclose(output_);
}

Row Child::answer() const {
  constexpr int look_ms = 100;
  pollfd output{.fd = ::fileno(output_), .events = POLLIN, .revents = 0};
  while (::poll(&output, 1, look_ms) == 0) {
    if (HeldSignals::pending()) throw std::runtime_error("told to stop");
  }
  std::string line; // it is written at once
  for (int byte = std::fgetc(output_); byte != EOF && byte != '\n'; byte = std::fgetc(output_))
    line += static_cast<char>(byte);
  auto answer = Row::parse(line, nullptr, false);
  if (!answer.is_object()) throw std::runtime_error("a process of this program ended without an answer");
  return answer;
}

void Child::wait() {
  int status = 0;
  const bool waited = ::waitpid(std::exchange(process_, -1), &status, 0) > 0;
  if (!waited || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("a process of this program ended out of order");
  }
}

void Child::kill() {
  const int process = std::exchange(process_, -1);
  ::kill(process, SIGKILL);
  int status = 0;
  const bool waited = ::waitpid(process, &status, 0) == process;
  if (!waited || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    throw std::runtime_error("a process of this program had ended before it was killed");
  }
}

void die_with(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) throw std::runtime_error("the parent is gone");
}

} // namespace onced::bench::scale
