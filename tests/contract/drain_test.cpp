// The ends that are asked for: signals to either side.
#include <doctest/doctest.h>

#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// SIGINT and SIGTERM at one moment: both wait for it when it goes on.
void send_two_signals(const Process &process) {
  process.signal(SIGSTOP);
  process.signal(SIGINT);
  process.signal(SIGTERM);
  process.signal(SIGCONT);
}

} // namespace

TEST_CASE("a worker that is told to stop under load drains and exits with 0 and the rest settles at the next one") {
  for (const int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    constexpr std::size_t jobs = 20'000;
    WorkerProcess worker;
    worker.start();
    Process sender({.arguments = worker.send(), .input = jobs_as_json("job", jobs)});
    for (int lines = 0; lines < 1000; ++lines)
      REQUIRE(sender.next_line().has_value());
    const auto asked = std::chrono::steady_clock::now();
    worker.process().signal(signal);
    const Finished drained = finish(worker.process());
    CHECK(drained.exit == 0);
    CHECK(drained.output == "{\"event\":\"stopped\"}\n");
    CHECK(drained.errors.find("worker.draining") != std::string::npos);
    // A batch in hand and 1 s for its replies; the rest is for slow machines.
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(15));
    CHECK(sender.is_running());

    worker.start();
    const Finished sent = finish(sender);
    CHECK(sent.exit == 0);
    CHECK(sent.lines().size() == jobs - 1000);
    CHECK(worker.rows() == Rows{jobs, 0});
  }
}

TEST_CASE("an idle worker drains at once") {
  WorkerProcess worker;
  worker.start();
  CHECK(worker.stop() == 0);
  CHECK(worker.process().rest_of_output() == "{\"event\":\"stopped\"}\n");
  CHECK(worker.rows() == Rows{0, 0});
}

TEST_CASE("a second signal stops the worker at once with 128 and its number") {
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send(), jobs_as_json("job", 10)).exit == 0);
  send_two_signals(worker.process());
  const ExitStatus stopped = worker.process().wait();
  CAPTURE(stopped);
  CHECK((stopped.code == 128 + SIGTERM || stopped.code == 128 + SIGINT));
  worker.start(); // which is as safe as a crash
  CHECK(worker.rows() == Rows{10, 0});
}

TEST_CASE("a sender that is told to stop prints what is unsettled and exits with 75") {
  WorkerProcess worker;
  Process sender({.arguments = worker.send(), .input = std::nullopt});
  sender.write_input(jobs_as_json("job", 3));
  worker.start();
  for (int lines = 0; lines < 3; ++lines)
    CHECK(Line(sender.next_line().value())["outcome"] == "stored");
  worker.kill_now();
  sender.write_input(jobs_as_json("late", 2));
  sender.write_input("{\"operation_id\":\"no job\"\n"); // its line shows that those before it were taken
  sender.end_input();
  sender.signal(SIGTERM);
  const Finished stopped = finish(sender);
  CHECK(stopped.exit == 75);
  for (const auto &[outcome, times] : tally(stopped.lines(), "outcome"))
    CHECK((outcome == "unsettled" || outcome == "invalid"));
  CHECK(stopped.errors.find("unsettled") != std::string::npos);
}

TEST_CASE("a sender settles and prints each job while its input goes on") {
  WorkerProcess worker;
  worker.start();
  Process sender({.arguments = worker.send(), .input = std::nullopt});
  for (int job = 1; job <= 3; ++job) {
    const std::string id = "job-" + std::to_string(job);
    sender.write_input("{\"operation_id\":\"" + id + "\",\"numbers\":[1]}\n");
    const auto line = sender.next_line();
    REQUIRE(line.has_value());
    CHECK(Line(*line)["operation_id"] == id);
  }
  sender.end_input();
  CHECK(finish(sender).exit == 0);
}
