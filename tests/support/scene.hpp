#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced::testing {

// A scene is a test case marked `doctest::skip()` that runs in a process of its own: this program, executed again. Its
// parameters are environment variables; without them it must return at once.
class Scene {
public:
  using Parameters = std::map<std::string, std::string>;

  Scene(const std::string &test_case, const Parameters &parameters) {
    std::string filter = "--test-case=" + test_case;
    std::vector<std::string> environment;
    for (char **variable = ::environ; *variable != nullptr; ++variable)
      environment.emplace_back(*variable);
    for (const auto &[name, value] : parameters)
      environment.push_back(name + "=" + value);
    std::vector<char *> variables;
    for (std::string &variable : environment)
      variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string program = "onced-scene";
    std::string no_skip = "--no-skip";
    std::string minimal = "--minimal";
    std::array<char *, 5> arguments{program.data(), filter.data(), no_skip.data(), minimal.data(), nullptr};

    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ != 0) return;
    // Only calls that are safe between fork and exec.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // a scene must not outlive a test that was killed
    if (::getppid() != parent) ::_exit(127);
    ::execve("/proc/self/exe", arguments.data(), variables.data());
    ::_exit(127);
  }
  ~Scene() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  Scene(const Scene &) = delete;
  Scene &operator=(const Scene &) = delete;

  [[nodiscard]] pid_t process() const { return process_; }

  void kill_now() { ::kill(process_, SIGKILL); }

  // Waits for the end; the status as of waitpid.
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

  // True once the file exists; false after ten seconds.
  bool wait_for(const std::filesystem::path &file) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      if (std::filesystem::exists(file)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

private:
  pid_t process_ = -1;
};

// Runs a scene to its end; the status as of waitpid.
inline int play(const std::string &test_case, const Scene::Parameters &parameters) {
  return Scene(test_case, parameters).wait();
}

inline bool was_killed(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// A parameter of the scene that runs; empty outside of it.
inline std::string scene_parameter(const char *name) {
  const char *value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): the environment does not change
  return value == nullptr ? std::string() : value;
}

[[noreturn]] inline void kill_this_process() {
  ::raise(SIGKILL);
  ::_exit(127);
}

} // namespace onced::testing
