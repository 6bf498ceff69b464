#pragma once

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <unistd.h>

#include "base/child_process.hpp"
#include "support/eventually.hpp"

namespace onced::testing {

// A scene is a test case marked `doctest::skip()` that runs in a process of its own: this program, executed again. Its
// parameters are environment variables; without them it must return at once.
class Scene {
public:
  using Parameters = EnvironmentVariables;

  Scene(const std::string &test_case, const Parameters &parameters) {
    EnvironmentVariables environment = parameters;
    environment.merge(own_environment());
    process_ = ChildProcess::start({.words = {"/proc/self/exe", "--test-case=" + test_case, "--no-skip", "--minimal"},
                                    .environment = std::move(environment)})
                   .value();
  }

  [[nodiscard]] pid_t process() const { return process_.id(); }

  void kill_now() const { process_.signal(SIGKILL); }

  ProcessEnd wait() { return process_.wait(); }

  // True once the file exists.
  [[nodiscard]] bool wait_for(const std::filesystem::path &file) const {
    return eventually([&file] { return std::filesystem::exists(file); });
  }

private:
  ChildProcess process_;
};

// Runs a scene to its end.
inline ProcessEnd play(const std::string &test_case, const Scene::Parameters &parameters) {
  return Scene(test_case, parameters).wait();
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
