// A worker whose inline handler ends the process, started again each time as a supervisor would: the poison is given up
// after its runs, and every other job has its result. A kill -9 harms no good job. And a full disk does not turn the
// noting of jobs into a crash of its own. Which crash is counted for which job is in
// tests/unit/store/suspects_test.cpp.
#include <doctest/doctest.h>

#include <fstream>
#include <thread>

#include <sys/stat.h>

#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "store/suspects/running_slots.hpp"
#include "support/file_content.hpp"
#include "support/small_disk.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// `Process` runs `onced serve …`: this runs the other worker with those of its arguments that it knows.
const std::vector<std::string> crashing{"/bin/sh", "-c", "shift 2; exec \"$0\" \"$@\"", ONCED_CRASHING};

std::string crash_job(const std::string &id, const std::filesystem::path &file, unsigned times) {
  return R"({"operation_id":")" + id + R"(","type":"crash","file":")" + file.string() + R"(","times":)" +
         std::to_string(times) + "}\n";
}

// Starts the worker again whenever it has ended, until the sender has; how often it was started.
unsigned supervise(const WorkerProcess &worker, Process &sender) {
  unsigned starts = 0;
  while (sender.is_running()) {
    Process running({.arguments = worker.serve(), .wrapper = crashing});
    ++starts;
    REQUIRE(eventually([&] { return !running.is_running() || !sender.is_running(); }));
    if (!sender.is_running()) {
      running.signal(SIGTERM);
      CHECK(running.wait() == 0);
    } else {
      CHECK(running.wait().signal == SIGABRT);
    }
    REQUIRE(starts < 20);
  }
  return starts;
}

// Whether a slot in the file says that a job is running.
bool runs_a_job(const std::filesystem::path &data) {
  const std::string content = content_of(data / "running.slots");
  for (std::size_t at = 512; at < content.size(); at += 512) {
    if (content[at] != '\0') return true;
  }
  return false;
}

} // namespace

TEST_CASE("a job that ends its worker is a dead letter after five runs and every other job has its result") {
  const ScratchDirectory directory;
  const auto poison = directory.path() / "poison";
  const WorkerProcess worker;
  std::string input;
  for (unsigned number = 0; number < 20; ++number) {
    if (number == 7) input += crash_job("poison", poison, 1000);
    input += crash_job("good-" + std::to_string(number), directory.path() / std::to_string(number), 0);
    input += jobs_as_json("sum-" + std::to_string(number), 1);
  }
  Process sender({.arguments = worker.send({"--deadline", "60s"}), .input = input});
  CHECK(supervise(worker, sender) == 6);
  // What was committed, but not told before the worker ended, is told as a duplicate.
  auto told = tally(finish(sender).lines(), "outcome");
  CHECK(told["stored"] + told["duplicate"] == 40);
  CHECK(told["failed"] == 1);
  CHECK(lines_in(poison) == 5);
  CHECK(worker.rows() == Rows{40, 1});
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  CHECK(letters[0]["operation_id"] == "poison");
  CHECK(letters[0]["detail"] == "the handler has ended the worker 5 times, and was not run");
  CHECK(run_command({"verify", "--data", worker.data().string()}).exit == 0);
}

TEST_CASE("a job that ends its worker twice is stored by the third run") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "late";
  const WorkerProcess worker;
  Process sender({.arguments = worker.send({"--deadline", "60s"}), .input = crash_job("late", file, 3)});
  CHECK(supervise(worker, sender) == 3);
  const Line line = finish(sender).line();
  CHECK(line["outcome"] == "stored");
  CHECK(line["result"] == "3");
  CHECK(lines_in(file) == 3);
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("a job that is killed with its worker is run singly once and stored") {
  const ScratchDirectory directory;
  const auto slow = directory.path() / "slow";
  REQUIRE(::mkfifo(slow.c_str(), 0600) == 0); // the handler waits for a reader
  WorkerProcess worker;
  worker.start({}, crashing);
  Process sender(
      {.arguments = worker.send({"--deadline", "60s"}), .input = crash_job("slow", slow, 0) + jobs_as_json("sum", 5)});
  CHECK(eventually([&] { return runs_a_job(worker.data()); }));
  worker.kill_now();
  std::filesystem::remove(slow);
  worker.start({}, crashing);
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 6);
  CHECK(lines_in(slow) == 1);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{6, 0});
  CHECK(run_command({"verify", "--data", worker.data().string()}).exit == 0);
}

TEST_CASE("a full disk does not end a process that notes its jobs") {
  const SmallDisk disk;
  if (!disk.is_mounted()) {
    MESSAGE("skipped: mounting a small file system takes root");
    return;
  }
  // As a copy that left the zeros out: all of it a hole.
  std::ofstream(disk.path() / "running.slots") << std::string("onced slots 1\0\0\n", 16);
  std::filesystem::resize_file(disk.path() / "running.slots", 512 * (1 + limits::running_slots));
  auto slots = store::RunningSlots::open(disk.path());
  REQUIRE(slots.has_value());
  disk.fill();
  const Bytes key = key_of_effect("invoice-7").bytes;
  for (std::size_t number = 0; number < limits::running_slots; ++number)
    (*slots)->take().enter(key, false);
  CHECK((*slots)->found().size() == limits::running_slots);
  std::filesystem::create_directory(disk.path() / "other");
  CHECK_FALSE(store::RunningSlots::open(disk.path() / "other").has_value()); // there is no room for it: an error
}
