// A store that fails under a running worker: no space, and an fdatasync that reports EIO. Nothing is acknowledged while
// it lasts, the worker says that and why, and goes on by itself when the cause is gone. What an injected EIO does not
// show: the call was not executed, so the kernel still holds the bytes; losing them is for the power-loss tests.
#include <doctest/doctest.h>

#include <optional>

#include <unistd.h>

#include "support/small_disk.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

Line stats_of(const WorkerProcess &worker) {
  return run_command({"stats", "--replies", worker.replies()}).line();
}

// A log as large as this memory wants does not fit on the small disk, so none of it is set aside, and the disk is full
// soon.
const Arguments large_log = {"--memory", "1GiB"};

// Waits, while jobs fill what the log has set aside, until the worker says that it cannot go on, and checks what it
// says. By the next question the store may be open again: closing it frees some space.
void wait_until_unavailable(const WorkerProcess &worker) {
  std::optional<Line> stats;
  REQUIRE(eventually([&] {
    stats.emplace(stats_of(worker));
    return (*stats)["store_available"] == "false";
  }));
  CHECK((*stats)["unavailable_cause"].find("No space left on device") != std::string::npos);
  CHECK((*stats)["unavailable_at"].starts_with("20")); // a date
}

// Rows are read all the same while the store cannot be opened.
void check_reads(const WorkerProcess &worker) {
  for (const Arguments &from :
       {Arguments{"--replies", worker.replies()}, Arguments{"--data", worker.data().string()}}) {
    CHECK(eventually([&] {
      const Line before = stats_of(worker);
      const Finished count = run_command(Arguments{"count"} + from);
      const Line after = stats_of(worker);
      return before["store_available"] == "false" && before["store_openings"] == after["store_openings"] &&
             after["store_available"] == "false" && count.exit == 0 && count.line()["results"] != "0";
    }));
  }
}

// A new sender is told, and tells, why it waits.
void check_says_why(const WorkerProcess &worker) {
  const Finished sent = run_command(worker.send({"--deadline", "5s"}), jobs_as_json("late", 1));
  CHECK(sent.exit == 75);
  CHECK(sent.line()["cause"] == "worker_full");
  CHECK(sent.errors.find("worker_full") != std::string::npos);
  CHECK(stats_of(worker)["store_state"] == "full");
}

} // namespace

TEST_CASE("a full disk stops the acknowledgements and the worker goes on by itself when there is space again") {
  const SmallDisk disk;
  if (!disk.is_mounted()) {
    MESSAGE("skipped: mounting a small file system takes root");
    return;
  }
  constexpr std::size_t jobs = 150'000;
  WorkerProcess worker(disk.path() / "data");
  worker.start(large_log);
  disk.fill();
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", jobs)});
  wait_until_unavailable(worker);
  check_reads(worker);
  check_says_why(worker);
  disk.free();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == jobs);
  CHECK(stats_of(worker)["store_available"] == "true");
  CHECK(std::stoull(stats_of(worker)["store_openings"]) >= 2);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{jobs, 0});
}

TEST_CASE("a second worker is refused while the first opens its store again") {
  const SmallDisk disk;
  if (!disk.is_mounted()) {
    MESSAGE("skipped: mounting a small file system takes root");
    return;
  }
  WorkerProcess worker(disk.path() / "data");
  worker.start(large_log);
  disk.fill();
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 150'000)});
  wait_until_unavailable(worker);
  WorkerProcess second(disk.path() / "data");
  const Finished refused = run_command(second.serve());
  CHECK(refused.exit == 73);
  disk.free();
  CHECK(finish(sender).exit == 0);
  CHECK(worker.stop() == 0);
}

#ifndef ONCED_SANITIZED // the leak sanitizer does not work under ptrace
namespace {

const std::string strace = "/usr/bin/strace";

bool may_inject() {
  if (::access(strace.c_str(), X_OK) == 0) return true;
  MESSAGE("skipped: there is no strace");
  return false;
}

// Starts a worker with one thread, whose fdatasync number `when` reports EIO. Each thread is counted by itself. The
// opening is on another thread than the commits, and makes fewer calls than `when` may be: 15 and more.
void start_with_failing_sync(WorkerProcess &worker, const std::string &when, const Arguments &more = {}) {
  worker.start(); // creates the database, so that the next opening writes little
  CHECK(worker.stop() == 0);
  worker.start(Arguments{"--workers", "1"} + more,
               {strace, "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e",
                "inject=fdatasync:error=EIO:when=" + when});
}

} // namespace

TEST_CASE("an fdatasync that fails acknowledges nothing of its batch and every job has one effect in the end") {
  if (!may_inject()) return;
  for (const char *when : {"15", "20", "40"}) {
    CAPTURE(when);
    constexpr std::size_t jobs = 2000;
    WorkerProcess worker;
    start_with_failing_sync(worker, when);
    const Finished sent = run_command(worker.send({"--window", "16"}), jobs_as_json("job", jobs));
    CHECK(sent.exit == 0);
    CHECK(sent.lines().size() == jobs);
    CHECK(std::stoull(stats_of(worker)["store_openings"]) >= 2);
    CHECK(worker.stop() == 0);
    CHECK(worker.rows() == Rows{jobs, 0});
  }
}

TEST_CASE("a worker killed while it opens a failed store again loses nothing") {
  if (!may_inject()) return;
  for (const char *point : {"worker.before-reopen:1", "worker.after-reopen:1"}) {
    CAPTURE(point);
    constexpr std::size_t jobs = 500;
    WorkerProcess worker;
    start_with_failing_sync(worker, "15", {"--kill-at", point});
    Process sender({.arguments = worker.send({"--window", "16"}), .input = jobs_as_json("job", jobs)});
    CHECK(worker.process().wait().signal == SIGKILL);
    worker.start();
    const Finished sent = finish(sender);
    CHECK(sent.exit == 0);
    CHECK(sent.lines().size() == jobs);
    CHECK(worker.stop() == 0);
    CHECK(worker.rows() == Rows{jobs, 0});
  }
}
#endif
