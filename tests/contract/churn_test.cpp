// The same thing over and over: poison with kills between, drains under load, senders that come and go. Nothing piles
// up and nothing is lost or counted twice. What this does not show: memory over days.
#include <doctest/doctest.h>

#include "onced/sender.hpp"
#include "support/job_bytes.hpp"
#include "support/process_figures.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A sender of its own that settles one job and leaves.
Outcome send_one(const WorkerProcess &worker, std::int64_t number) {
  SystemClock clock;
  SystemRandom random;
  SilentLog log;
  SenderOptions options;
  options.jobs_endpoint = worker.jobs();
  options.replies_endpoint = worker.replies();
  const auto sender = Sender::start(options, clock, random, log);
  REQUIRE(sender.has_value());
  REQUIRE((*sender)->submit(job_bytes("visit-" + std::to_string(number), {number}), patience_from_now()).has_value());
  const auto settled = (*sender)->next_settled(patience_from_now());
  REQUIRE(settled.has_value());
  return settled->outcome;
}

} // namespace

TEST_CASE("a hundred poison messages sent over and over with kills between are a hundred dead letters") {
  WorkerProcess worker;
  constexpr std::size_t poisons = 100;
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    worker.start();
    RawPeer peer(worker);
    for (std::size_t number = 0; number < poisons; ++number)
      peer.send("poison " + std::to_string(number));
    // Behind them on the same connection, so its outcome says that all were taken.
    peer.greet();
    CHECK(peer.deliver_one(job_bytes("round", {1})).outcome == (round == 0 ? Outcome::stored : Outcome::duplicate));
    CHECK(eventually([&] { return count_rows(worker.data()) == Rows{1, poisons}; }));
    worker.kill_now();
    CHECK(worker.rows() == Rows{1, poisons});
  }
}

TEST_CASE("a worker that is told to stop fifty times under load leaves every job with one effect") {
  WorkerProcess worker;
  constexpr std::size_t jobs = 60'000;
  worker.start();
  Process sender({.arguments = worker.send({"--deadline", "10m"}), .input = jobs_as_json("job", jobs)});
  for (int stop = 0; stop < 50; ++stop) {
    CAPTURE(stop);
    for (int lines = 0; lines < 200; ++lines)
      REQUIRE(sender.next_line().has_value());
    CHECK(worker.stop() == 0);
    worker.start();
  }
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == jobs - 50 * 200);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{jobs, 0});
}

TEST_CASE("a thousand senders that come and go leave the worker with the descriptors and the memory it had") {
  WorkerProcess worker;
  worker.start();
  constexpr std::int64_t warm_up = 50;
  constexpr std::int64_t visits = 1000;
  for (std::int64_t number = 0; number < warm_up; ++number)
    CHECK(send_one(worker, number) == Outcome::stored);
  const pid_t process = worker.process().id();
  std::size_t files = 0;
  CHECK(eventually([&] { // the last visitor's connections are closed
    const std::size_t before = std::exchange(files, open_files(process));
    return files == before;
  }));
  const std::size_t resident = status_figure(process, "VmRSS");
  for (std::int64_t number = warm_up; number < warm_up + visits; ++number)
    CHECK(send_one(worker, number) == Outcome::stored);
  CHECK(eventually([&] { return open_files(process) <= files; }));
#ifdef ONCED_SANITIZED
  MESSAGE("skipped: the sanitizer keeps freed memory for a while, so what is resident says nothing; it was "
          << resident);
#else
  CHECK(status_figure(process, "VmRSS") <= resident + 16 * 1024);
#endif
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{warm_up + visits, 0});
}

TEST_CASE("copies and losses on both ways and a worker killed again and again come to one effect a job") {
  WorkerProcess worker;
  constexpr std::size_t shared = 150;
  constexpr std::size_t jobs = 300;
  const Arguments lossy_worker{"--drop-replies", "0.3", "--delay-replies", "2ms", "--seed", "11"};
  const auto send = [&](const std::string &seed) {
    return worker.send({"--copies", "10", "--shuffle", "--loss", "0.3", "--seed", seed, "--window", "64", "--deadline",
                        "5m", "--acknowledgement-timeout", "50ms", "--acknowledgement-timeout-max", "200ms"});
  };
  // Two senders, half of whose ids are the same jobs.
  worker.start(lossy_worker);
  Process one({.arguments = send("1"), .input = jobs_as_json("shared", shared) + jobs_as_json("one", jobs - shared)});
  Process other(
      {.arguments = send("2"), .input = jobs_as_json("shared", shared) + jobs_as_json("other", jobs - shared)});
  for (int kill = 0; kill < 5; ++kill) {
    for (int lines = 0; lines < 100; ++lines)
      REQUIRE(one.next_line().has_value());
    worker.kill_now();
    worker.start(lossy_worker);
  }
  CHECK(finish(one).exit == 0);
  CHECK(finish(other).exit == 0);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{2 * jobs - shared, 0});
}
