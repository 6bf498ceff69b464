// Verifies how a child process is started, watched, read and ended. What a program has of the process that starts it is
// verified where commands are (tests/unit/runner).
#include "base/child_process.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "support/copy.hpp"
#include "support/eventually.hpp"

namespace {

using namespace std::chrono_literals;
using onced::ChildOutput;
using onced::ChildProcess;
using onced::Descriptor;
using onced::MonotonicTime;
using onced::Pipe;
using onced::ProcessEnd;
using onced::Program;
using onced::ScratchDirectory;
using onced::testing::eventually;
using onced::testing::patience_from_now;

// A shell script and what it prints.
struct Script {
  explicit Script(const std::string &text, std::size_t unread_bytes_max = std::string::npos) {
    Pipe pipe = onced::make_pipe().value();
    process =
        ChildProcess::start({.words = {"/bin/sh", "-c", text}, .environment = {}, .output = pipe.writing.number()})
            .value();
    output = ChildOutput(std::move(pipe.reading), unread_bytes_max);
  }

  ChildOutput output;
  ChildProcess process;
};

std::string text_of_end(const std::string &script) {
  return Script(script).process.wait().text();
}

bool is_alive(int process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(status, text);
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

} // namespace

TEST_CASE("an end is told by its exit code or its signal and to one who comes too late as lost") {
  CHECK(text_of_end("exit 0") == "exit code 0");
  CHECK(text_of_end("exit 75") == "exit code 75");
  CHECK(text_of_end("kill -9 $$") == "killed by signal 9");
  CHECK(text_of_end("kill -11 $$") == "killed by signal 11");
  const ProcessEnd lost(std::nullopt);
  CHECK(lost.text().find("lost") != std::string::npos);
  CHECK_FALSE(lost.exit_code().has_value());
  CHECK_FALSE(lost.signal().has_value());
  CHECK_FALSE(lost.is_success());
}

TEST_CASE("a child that has ended keeps its number until it is waited for and tells its end again") {
  Script script("exit 3");
  REQUIRE(script.process.ends_before(patience_from_now()));
  CHECK(script.process.has_ended());
  CHECK_FALSE(script.process.was_waited_for());
  CHECK(::kill(script.process.id(), 0) == 0);
  CHECK(script.process.wait().exit_code() == 3);
  CHECK(script.process.was_waited_for());
  CHECK(script.process.wait().exit_code() == 3);
  script.process.kill(); // nobody: its number may be another's
}

TEST_CASE("a child that runs on is waited for until the deadline and no longer") {
  Script script("exec sleep 1000");
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(script.process.ends_before(begin + 50ms));
  CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
  CHECK_FALSE(script.process.has_ended());
  script.process.signal(SIGTERM);
  CHECK(script.process.wait().signal() == SIGTERM);
}

TEST_CASE("what a child has started in its process group is killed with it and at its end") {
  for (const bool ends_by_itself : {false, true}) {
    CAPTURE(ends_by_itself);
    int started = 0;
    {
      Script script(ends_by_itself ? "sleep 1000 & echo $!" : "sleep 1000 & echo $!; wait");
      const auto line = script.output.next_line(patience_from_now());
      REQUIRE(line.has_value());
      started = std::stoi(*line);
      if (ends_by_itself) CHECK(script.process.wait().is_success());
    }
    CHECK(eventually([started] { return !is_alive(started); }));
  }
}

TEST_CASE("a child goes on where it is moved and what it was moved from kills nobody") {
  ChildProcess other;
  CHECK(other.has_ended());
  {
    Script script("exec sleep 1000");
    other = std::move(script.process);
  }
  CHECK_FALSE(other.has_ended());
  other.kill();
  CHECK(other.wait().is_kill());
}

TEST_CASE("a program that cannot be run is an error and leaves no process") {
  const auto absent = ChildProcess::start({.words = {"/absent/program"}, .environment = {}});
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error() == ENOENT);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a program has the environment of this process unless it is given another") {
  const auto printed = [](const Program &program) {
    Pipe pipe = onced::make_pipe().value();
    Program printing = program;
    printing.words = {"env"};
    printing.output = pipe.writing.number();
    auto process = ChildProcess::start(printing).value();
    pipe.writing = Descriptor();
    return ChildOutput(std::move(pipe.reading)).rest(patience_from_now()).value_or("late");
  };
  CHECK(printed({.words = {}, .environment = {{{"A", "b=c"}}}}) == "A=b=c\n");
  const std::string own = printed({.words = {}, .environment = {}});
  CHECK(own.find("PATH=") != std::string::npos);
  CHECK(static_cast<std::size_t>(std::count(own.begin(), own.end(), '\n')) >= onced::own_environment().size());
}

TEST_CASE("a stream that is not open is closed in the child") {
  Pipe pipe = onced::make_pipe().value();
  auto process = ChildProcess::start({.words = {"/bin/sh", "-c", "test -e /proc/self/fd/0; echo $? >&2; echo x"},
                                      .environment = {},
                                      .input = -1,
                                      .output = -1,
                                      .errors = pipe.writing.number()})
                     .value();
  pipe.writing = Descriptor();
  ChildOutput errors(std::move(pipe.reading));
  CHECK(errors.next_line(patience_from_now()) == "1");
  CHECK(process.wait().exit_code() != 0); // echo has nowhere to write to
}

TEST_CASE("lines are taken one by one and the rest without its end of line") {
  Script script("printf 'one\\n\\nthree\\nrest'");
  CHECK(script.output.next_line(patience_from_now()) == "one");
  CHECK(script.output.next_line(patience_from_now()) == "");
  CHECK(script.output.next_line(patience_from_now()) == "three");
  CHECK_FALSE(script.output.next_line(patience_from_now()).has_value());
  CHECK(script.output.has_ended());
  CHECK(script.output.take_rest() == "rest");
}

TEST_CASE("a line that does not come is waited for until the deadline and is whole when it comes") {
  ScratchDirectory directory;
  Script script("printf begun; until test -e " + (directory.path() / "go").string() +
                "; do sleep 0.01; done; echo -end");
  CHECK_FALSE(script.output.next_line(std::chrono::steady_clock::now() + 50ms).has_value());
  CHECK_FALSE(script.output.has_ended());
  CHECK_FALSE(script.output.rest(std::chrono::steady_clock::now() + 20ms).has_value());
  std::ofstream(directory.path() / "go") << "";
  CHECK(script.output.next_line(patience_from_now()) == "begun-end");
}

TEST_CASE("an output that nobody takes is kept within its bound and the lines before it are whole") {
  Script script("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last", 100);
  std::size_t longest = 0;
  std::string first;
  while (const auto line = script.output.next_line(patience_from_now())) {
    if (first.empty()) first = *line;
    longest = std::max(longest, line->size());
  }
  CHECK(script.output.has_ended());
  CHECK(first == "first");
  CHECK(longest <= 100 + 64UL * 1024);
}

TEST_CASE("a read is given up where it is interrupted though somebody keeps the pipe open") {
  const Pipe pipe = onced::make_pipe().value();
  Pipe bell = onced::make_pipe().value();
  ChildOutput output{Descriptor(::fcntl(pipe.reading.number(), F_DUPFD_CLOEXEC, 0))};
  bell.writing = Descriptor(); // its end is readable
  CHECK_FALSE(output.read(MonotonicTime::max(), bell.reading.number()));
  CHECK_FALSE(output.has_ended());
}

TEST_CASE("a copy does its work and ends with its result and dies with what it was copied from") {
  CHECK(ChildProcess::start_copy([] { return 7; }).value().wait().exit_code() == 7);
  CHECK(onced::testing::do_in_copy([] { ::raise(SIGKILL); }).is_kill());
  Pipe pipe = onced::make_pipe().value();
  auto first = ChildProcess::start_copy([&] {
                 auto second = ChildProcess::start_copy([] { return ::pause(); }).value();
                 static_cast<void>(onced::write_all(pipe.writing, std::to_string(second.id()) + "\n"));
                 return ::pause();
               }).value();
  pipe.writing = Descriptor();
  ChildOutput output(std::move(pipe.reading));
  const int second = std::stoi(output.next_line(patience_from_now()).value());
  CHECK(is_alive(second));
  first.kill();
  CHECK(eventually([second] { return !is_alive(second); }));
}

TEST_CASE("a pipe has no number of a standard stream though one is free") {
  CHECK(onced::testing::do_in_copy([] {
          ::close(STDIN_FILENO);
          const auto pipe = onced::make_pipe();
          if (!pipe || pipe->reading.number() < 100 || pipe->writing.number() < 100) ::_exit(1);
        }).is_success());
}
