#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "runner/command.hpp"
#include "runner/job_lock.hpp"
#include "support/eventually.hpp"

namespace onced::runner::testing {

using namespace std::chrono_literals;
using onced::testing::eventually;
using Lines = std::vector<std::string>;
using EndsAs = CommandEnd::Outcome;
using Reason = NotStarted::Reason;

inline Lines lines_of(const std::string &text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// Empty where there is none yet.
inline std::string first_line_of(const std::filesystem::path &file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Whether it has ended, be it that nobody has waited for it yet.
inline bool is_gone(pid_t process) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t state = text.rfind(") ");
  return state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X';
}

// A job, its folder, and a command for it. The folder is $DIR of the command.
struct CommandBench {
  CommandBench() {
    options.environment = {{"PATH", "/usr/bin:/bin"}, {"DIR", directory.path()}};
    options.deadline = onced::testing::patience;
    job.operation_id = "op-1";
    job.idempotency_key = "key-1";
    job.fencing_token = "token-1";
    job.lock_file = directory.path() / "lock";
  }

  void script(const std::string &text) { options.arguments = {"/bin/sh", "-c", text}; }

  CommandEnd run(const CommandWatch &watch = {}) {
    auto command = Command::start(options, job, clock);
    REQUIRE_MESSAGE(command.has_value(), command.error().cause);
    return (*command)->run(watch);
  }
  CommandEnd run(const std::string &text) {
    script(text);
    return run();
  }

  // Why it does not start; it must not.
  NotStarted failure() {
    const auto command = Command::start(options, job, clock);
    REQUIRE_FALSE(command.has_value());
    return command.error();
  }

  // Runs a script in a thread of its own, and asks it to stop when it has made the file `ready`.
  CommandEnd stop_when_ready(const std::string &text) {
    script(text);
    const Descriptor bell(::eventfd(0, EFD_CLOEXEC));
    CommandEnd end;
    std::thread executor([&] { end = run({.stop = bell.number(), .heartbeat = {}, .heartbeat_interval = 1s}); });
    const bool is_ready = eventually([this] { return std::filesystem::exists(file("ready")); });
    const std::uint64_t one = 1;
    const bool rung = ::write(bell.number(), &one, sizeof one) == sizeof one;
    executor.join();
    CHECK(is_ready);
    CHECK(rung);
    return end;
  }

  [[nodiscard]] std::filesystem::path file(const char *name) const { return directory.path() / name; }
  [[nodiscard]] bool is_free() const { return lock_is_free(job.lock_file).value(); }
  [[nodiscard]] bool becomes_free() const {
    return eventually([this] { return is_free(); });
  }

  ScratchDirectory directory;
  SystemClock clock;
  CommandOptions options;
  CommandJob job;
};

// Puts a process that has left the process group, and what a test needs to end it, into a script: its id is printed.
inline constexpr const char *escape =
    "mkfifo $DIR/fifo; setsid sh -c 'echo $$ > $DIR/fifo; exec sleep 1000' & cat $DIR/fifo; ";

} // namespace onced::runner::testing
