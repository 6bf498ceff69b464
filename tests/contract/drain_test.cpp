// The ends that are asked for: signals to either side.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/file_content.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// Both at one moment: they wait for it when it goes on, the one with the lower number first.
void send_two_signals(const Process &process, int one, int other) {
  process.signal(SIGSTOP);
  process.signal(one);
  process.signal(other);
  process.signal(SIGCONT);
}

// Whether it blocks SIGTERM, to wait for it.
bool signals_blocked(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigBlk:", 0) == 0) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1U) != 0;
  }
  return false;
}

// A worker that drains for as long as a handler of it runs: for ever.
class DrainingWorker {
public:
  DrainingWorker() {
    std::ofstream(config_) << "[handlers.hangs]\ncommand = [\"/bin/sleep\", \"1000\"]\n";
    worker.start({"--config", config_, "--drain-timeout", "1h"});
    CHECK(run_command(worker.send({"--deadline", "500ms"}), R"({"operation_id":"a","type":"hangs"})").exit == 75);
    CHECK(eventually([&] {
      const auto pending = run_command({"pending", "list", "--data", worker.data().string()}).lines();
      return pending.size() == 1 && pending[0]["receives"] == "1";
    }));
  }
  [[nodiscard]] bool has_logged(const std::string &event, std::size_t times = 1) {
    return eventually([&] { return times_in(worker.process().errors(), event) >= times; });
  }

  WorkerProcess worker;

private:
  static std::size_t times_in(const std::string &text, const std::string &what) {
    std::size_t times = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++times;
    return times;
  }

  ScratchDirectory directory_;
  std::string config_ = directory_.path() / "onced.toml";
};

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

TEST_CASE("a second SIGINT and a SIGQUIT stop the worker at once with 128 and their number") {
  for (const int first : {SIGINT, SIGTERM, SIGQUIT}) {
    CAPTURE(first);
    DrainingWorker draining;
    WorkerProcess &worker = draining.worker;
    CHECK(run_command(worker.send(), jobs_as_json("job", 10)).exit == 0);
    worker.process().signal(first);
    const int last = first == SIGQUIT ? SIGQUIT : SIGINT;
    if (first != SIGQUIT) CHECK(draining.has_logged("worker.draining"));
    if (first != SIGQUIT) worker.process().signal(last);
    CHECK(worker.process().wait() == 128 + last);
    worker.start(); // which is as safe as a crash
    const auto counted = run_command({"count", "--data", worker.data().string()}).line();
    CHECK(counted["results"] == "10");
    CHECK(counted["pending"] == "1");
  }
}

TEST_CASE("a second SIGTERM changes nothing") {
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send(), jobs_as_json("job", 10)).exit == 0);
  send_two_signals(worker.process(), SIGINT, SIGTERM);
  CHECK(worker.process().wait() == 0);
  CHECK(worker.process().rest_of_output() == "{\"event\":\"stopped\"}\n");
  CHECK(worker.rows() == Rows{10, 0});

  DrainingWorker draining;
  draining.worker.process().signal(SIGTERM);
  CHECK(draining.has_logged("worker.draining"));
  draining.worker.process().signal(SIGTERM);
  draining.worker.process().signal(SIGHUP); // taken after it
  CHECK(draining.has_logged("worker.hangup"));
  CHECK(draining.worker.process().is_running());
}

TEST_CASE("a SIGHUP ends no worker and opens the stream of events anew") {
  const ScratchDirectory directory;
  const std::filesystem::path stream = directory.path() / "events";
  WorkerProcess worker;
  worker.start({"--events", stream.string()});
  CHECK(run_command(worker.send(), jobs_as_json("before", 1)).exit == 0);
  std::filesystem::rename(stream, directory.path() / "events.1");
  worker.process().signal(SIGHUP);
  CHECK(eventually([&] { return worker.process().errors().find("worker.hangup") != std::string::npos; }));
  CHECK(run_command(worker.send(), jobs_as_json("after", 1)).exit == 0);
  CHECK(worker.stop() == 0);
  CHECK(content_of(stream).find("after-1") != std::string::npos);
  CHECK(content_of(stream).find("before-1") == std::string::npos);
  CHECK(content_of(directory.path() / "events.1").find("after-1") == std::string::npos);
  CHECK(worker.rows() == Rows{2, 0});
}

TEST_CASE("a sender is told to stop by a hangup too unless it is to ignore that") {
  const WorkerProcess worker; // which does not run
  Process stopped({.arguments = worker.send(), .input = jobs_as_json("job", 1)});
  Process goes_on({.arguments = worker.send({"--deadline", "2s"}),
                   .input = jobs_as_json("job", 1),
                   .wrapper = {"/usr/bin/env", "--ignore-signal=HUP"}});
  for (const Process *sender : {&stopped, &goes_on}) // until each watches its signals
    CHECK(eventually([&] { return signals_blocked(sender->id()); }));
  goes_on.signal(SIGHUP);
  stopped.signal(SIGHUP);
  CHECK(finish(stopped).exit == 75);
  CHECK(goes_on.is_running());
  CHECK(finish(goes_on).exit == 75);
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
