// Pipes that nobody reads: stderr, standard output and the stream of events. Whatever is not read is lost or waited for
// by nobody else: jobs are settled, and signals and ends are obeyed.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A FIFO that holds as much as it can, whose reader does not read until it is told to.
class FullPipe {
public:
  FullPipe() {
    REQUIRE(::mkfifo(path().c_str(), 0600) == 0);
    end_ = ::open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(end_ >= 0);
    REQUIRE(::fcntl(end_, F_SETPIPE_SZ, 4096) >= 4096);
    fill();
  }
  ~FullPipe() { ::close(end_); }
  FullPipe(const FullPipe &) = delete;
  FullPipe &operator=(const FullPipe &) = delete;

  void fill() const {
    while (::write(end_, "x", 1) == 1) {
    }
  }
  // What is in it, without the filling.
  [[nodiscard]] std::string take() const {
    std::string text(65'536, '\0');
    const ssize_t count = ::read(end_, text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    std::erase(text, 'x');
    return text;
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "pipe"; }
  // A wrapper of a command whose stream of this number goes there.
  [[nodiscard]] std::vector<std::string> as(int number) const {
    return {"/bin/sh", "-c", "exec \"$@\" " + std::to_string(number) + "> " + path().string(), "sh"};
  }

private:
  ScratchDirectory directory_;
  int end_ = -1;
};

} // namespace

TEST_CASE("a worker whose stderr nobody reads settles jobs and answers and drains") {
  const FullPipe pipe;
  WorkerProcess worker;
  worker.start({"--durability", "page-cache"}, pipe.as(STDERR_FILENO)); // which logs before the start
  CHECK(run_command(worker.send(), jobs_as_json("job", 100)).exit == 0);
  CHECK(worker.rows() == Rows{100, 0});
  CHECK(worker.stop() == 0);
  CHECK(worker.process().rest_of_output() == "{\"event\":\"stopped\"}\n");
}

TEST_CASE("a second SIGINT stops a worker whose stderr nobody reads at once") {
  const FullPipe pipe;
  WorkerProcess worker;
  worker.start({"--durability", "page-cache"}, pipe.as(STDERR_FILENO));
  worker.process().signal(SIGQUIT);
  CHECK(worker.process().wait() == 128 + SIGQUIT);
}

TEST_CASE("what a stderr that is read again is told is whole lines") {
  const FullPipe pipe;
  WorkerProcess worker;
  worker.start({"--durability", "page-cache"}, pipe.as(STDERR_FILENO));
  std::string told = pipe.take();
  CHECK(eventually([&] {
    told += pipe.take();
    return told.find("durability.weak") != std::string::npos && told.back() == '\n';
  }));
  CHECK(worker.stop() == 0);
}

TEST_CASE("an error at the start is exit code 73 though nobody reads stderr") {
  const FullPipe pipe;
  WorkerProcess first;
  first.start();
  CHECK(run_command(Process::Options{.arguments = first.serve(), .wrapper = pipe.as(STDERR_FILENO)}).exit == 73);
}

TEST_CASE("a worker whose standard output nobody reads settles jobs and drains and exits with 74") {
  const FullPipe pipe;
  WorkerProcess worker;
  Process process({.arguments = worker.serve(), .wrapper = pipe.as(STDOUT_FILENO)});
  CHECK(run_command(worker.send(), jobs_as_json("job", 10)).exit == 0);
  process.signal(SIGTERM);
  const ExitStatus exit = process.wait();
  CHECK(exit == 74);
  CHECK(exit.story.find("nobody reads it") != std::string::npos);
  CHECK(worker.rows() == Rows{10, 0});
}

TEST_CASE("a sender whose outputs nobody reads is told to stop") {
  WorkerProcess worker;
  worker.start();
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    CAPTURE(number);
    const FullPipe pipe;
    Process sender({.arguments = worker.send(), .input = std::nullopt, .wrapper = pipe.as(number)});
    sender.write_input(jobs_as_json("job-" + std::to_string(number), 5));
    const std::uint64_t rows = number == STDOUT_FILENO ? 5 : 10;
    CHECK(eventually([&] { return worker.rows() == Rows{rows, 0}; }));
    sender.signal(SIGTERM);
    CHECK(sender.wait() == (number == STDOUT_FILENO ? 74 : 75));
  }
}

TEST_CASE("a stream of events to a FIFO that nobody has opened is refused before the start") {
  const FullPipe pipe;
  const ScratchDirectory directory;
  const std::filesystem::path fifo = directory.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const WorkerProcess worker;
  const Finished refused = run_command(worker.serve({"--events", fifo.string()}));
  CHECK(refused.exit == 74);
  CHECK(refused.errors.find("nobody reads this FIFO") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(worker.data()));
  CHECK(run_command(worker.send({"--events", fifo.string()}), jobs_as_json("job", 1)).exit == 74);
}

TEST_CASE("a stream of events whose reader does not read loses events and says so there and in the log") {
  const FullPipe pipe;
  WorkerProcess worker;
  worker.start({"--events", pipe.path().string()});
  CHECK(run_command(worker.send(), jobs_as_json("lost", 10)).exit == 0);
  static_cast<void>(pipe.take());
  CHECK(run_command(worker.send(), jobs_as_json("told", 1)).exit == 0);
  std::string told;
  CHECK(eventually([&] {
    told += pipe.take();
    return told.find("\"outcome\":\"stored\"") != std::string::npos;
  }));
  const auto lines = lines_of(told);
  CHECK(lines.front()["event"] == "events.dropped");
  CHECK(std::stoull(lines.front()["dropped"]) >= 20);
  CHECK(told.find("lost-1") == std::string::npos);
  CHECK(worker.stop() == 0);
  CHECK(worker.process().errors().find("events.dropped dropped=") != std::string::npos);
}
