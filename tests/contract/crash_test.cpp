// kill -9 of either side, with jobs in flight and at every kill point: nothing is lost and nothing is done twice.
// What kill -9 cannot show is a missing fdatasync: the page cache outlives a process.
#include <doctest/doctest.h>

#include <set>

#include "onced/kill_point.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// That every job of `jobs_as_json(prefix, jobs)` has settled as a success with its own result, each so many times.
void check_all_settled(const Finished &sent, std::size_t jobs, std::size_t copies = 1) {
  CHECK(sent.exit == 0);
  const auto lines = sent.lines();
  CHECK(lines.size() == jobs * copies);
  std::map<std::string, std::size_t> times;
  std::size_t wrong = 0;
  for (const Line &line : lines) {
    const std::string id = line["operation_id"];
    ++times[id];
    const auto number = std::stoull(id.substr(id.rfind('-') + 1));
    const bool success = line["outcome"] == "stored" || line["outcome"] == "duplicate";
    if (!success || line["result"] != std::to_string(number + 1)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(times.size() == jobs);
}

std::set<std::string> points_of(std::string_view side) {
  std::set<std::string> names;
  for (const std::string_view name : kill_point_names) {
    if (name.starts_with(side)) names.emplace(name);
  }
  return names;
}

// Runs a `send` while the worker is killed at this point again and again, each time at a later arrival, and comes back
// each time. Returns what `send` did.
Finished send_through_kills_at(WorkerProcess &worker, const std::string &point, std::size_t jobs) {
  worker.start({"--kill-at", point + ":1"});
  Process sender({.arguments = worker.send({"--window", "8"}), .input = jobs_as_json("job", jobs)});
  for (const char *next : {":2", ":5", ""}) {
    const ExitStatus killed = worker.process().wait();
    CHECK(killed.signal == SIGKILL);
    worker.start(*next == '\0' ? Arguments{} : Arguments{"--kill-at", point + next});
  }
  return finish(sender);
}

void check_worker_kill_point(const std::string &point) {
  CAPTURE(point);
  constexpr std::size_t jobs = 300;
  WorkerProcess worker;
  const Finished sent = send_through_kills_at(worker, point, jobs);
  check_all_settled(sent, jobs);
  CHECK(worker.rows() == Rows{jobs, 0});
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{jobs, 0});
  if (point == "worker.after-commit") {
    // Committed, but not told: those jobs were sent again and found.
    CHECK(tally(sent.lines(), "outcome").count("duplicate") == 1);
  }
}

} // namespace

TEST_CASE("a sender finishes by itself after its worker was killed with jobs in flight") {
  constexpr std::size_t jobs = 20'000;
  WorkerProcess worker;
  worker.start();
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", jobs)});
  std::string seen;
  for (int kills = 0; kills < 3; ++kills) {
    for (int lines = 0; lines < 2000; ++lines) {
      const auto line = sender.next_line();
      REQUIRE(line.has_value());
      seen += *line + "\n";
    }
    worker.kill_now();
    CHECK(sender.is_running());
    worker.start();
  }
  Finished sent = finish(sender);
  sent.output.insert(0, seen);
  check_all_settled(sent, jobs);
  CHECK(worker.rows() == Rows{jobs, 0});
}

TEST_CASE("two copies of every job survive kill -9 as one result each") {
  constexpr std::size_t jobs = 5000;
  WorkerProcess worker;
  worker.start();
  Process sender({.arguments = worker.send({"--copies", "2"}), .input = jobs_as_json("job", jobs)});
  const auto line = sender.next_line();
  REQUIRE(line.has_value());
  worker.kill_now();
  worker.start();
  Finished sent = finish(sender);
  sent.output.insert(0, *line + "\n");
  check_all_settled(sent, jobs, 2);
  CHECK(worker.rows() == Rows{jobs, 0});
}

TEST_CASE("what was acknowledged before kill -9 is in the database that nobody has reopened") {
  WorkerProcess worker;
  worker.start();
  check_all_settled(run_command(worker.send(), jobs_as_json("job", 500)), 500);
  worker.kill_now();
  CHECK(worker.rows() == Rows{500, 0}); // reads the log without recovery
  const Finished got = run_command({"get", "job-500", "--data", worker.data().string()});
  CHECK(got.line()["result"] == "501");
}

TEST_CASE("a worker killed at a message received loses nothing") {
  check_worker_kill_point("worker.received");
}
TEST_CASE("a worker killed after parsing loses nothing") {
  check_worker_kill_point("worker.parsed");
}
TEST_CASE("a worker killed after its look-up loses nothing") {
  check_worker_kill_point("worker.looked-up");
}
TEST_CASE("a worker killed before its commit has acknowledged nothing of it") {
  check_worker_kill_point("worker.before-commit");
}
TEST_CASE("a worker killed after its commit does nothing twice") {
  check_worker_kill_point("worker.after-commit");
}
TEST_CASE("a worker killed after its replies does nothing twice") {
  check_worker_kill_point("worker.after-reply");
}

TEST_CASE("a job that no worker has committed yet is never acknowledged") {
  WorkerProcess worker;
  worker.start({"--kill-at", "worker.before-commit:1"});
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 10)});
  CHECK(worker.process().wait().signal == SIGKILL);
  sender.signal(SIGTERM);
  const Finished stopped = finish(sender);
  CHECK(stopped.exit == 75);
  CHECK(tally_text(stopped.lines(), "outcome") == "unsettled 10");
  CHECK(worker.rows() == Rows{0, 0});
}

TEST_CASE("every kill point of the worker is met by the tests above or by those that are named here") {
  CHECK(points_of("worker.") == std::set<std::string>{"worker.received", "worker.parsed", "worker.looked-up",
                                                      "worker.before-commit", "worker.after-commit",
                                                      "worker.after-reply",
                                                      // dead_letters_changes_test
                                                      "worker.before-change", "worker.after-change",
                                                      // store_failure_test
                                                      "worker.before-reopen", "worker.after-reopen"});
}

TEST_CASE("a sender killed at any of its kill points does nothing twice when it is run again") {
  constexpr std::size_t jobs = 200;
  for (const std::string &point : points_of("sender.")) {
    for (const char *arrival : {":1", ":7"}) {
      CAPTURE(point);
      CAPTURE(arrival);
      WorkerProcess worker;
      worker.start();
      const std::string input = jobs_as_json("job", jobs);
      const Arguments small_window{"--window", "8"};
      const Finished killed = run_command(worker.send(small_window + Arguments{"--kill-at", point + arrival}), input);
      CHECK(killed.exit.signal == SIGKILL);
      const Finished again = run_command(worker.send(small_window), input);
      check_all_settled(again, jobs);
      CHECK(worker.rows() == Rows{jobs, 0});
    }
  }
}

TEST_CASE("a sender that starts before its worker waits for it") {
  WorkerProcess worker;
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 10)});
  worker.start();
  check_all_settled(finish(sender), 10);
}
