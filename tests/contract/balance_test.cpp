// The balance of a worker at every drain: deliveries = the sum of all outcomes + unknown + dropped, under everything
// that moves one of them, and drained in the middle of it. What a balance does not show is that each delivery was
// counted as what became of it: for that, one test knows what was sent.
#include <doctest/doctest.h>

#include <random>

#include <unistd.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"
#include "support/sanitized.hpp"
#include "support/seeds.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

using Figures = std::map<std::string, std::uint64_t>;

const Arguments json_log{"--log-format", "json"};

// What a worker has counted, as its log says once it has drained.
Figures drain(WorkerProcess &worker) {
  CHECK(worker.stop() == 0);
  const std::string log = worker.process().errors();
  const std::size_t event = log.find(R"("event":"worker.drained")");
  REQUIRE_MESSAGE(event != std::string::npos, log);
  const std::size_t begin = log.rfind('\n', event) + 1; // 0 where it is the first line
  const Line line(log.substr(begin, log.find('\n', event) - begin));
  Figures figures;
  for (const OutcomeTraits &outcome : outcome_table)
    figures[std::string(outcome.name)] = std::stoull(line[std::string(outcome.name)]);
  for (const char *name : {"deliveries", "unknown", "dropped", "queue_handled", "queue_refused"})
    figures[name] = std::stoull(line[name]);
  return figures;
}

void check_balance(const Figures &figures) {
  std::uint64_t became = figures.at("unknown") + figures.at("dropped");
  for (const OutcomeTraits &outcome : outcome_table)
    became += figures.at(std::string(outcome.name));
  // Queued jobs that have ended are counted once more, as what they ended with.
  CHECK(figures.at("deliveries") + figures.at("queue_handled") + figures.at("queue_refused") == became);
}

// Jobs of every kind of outcome, each kind every eighth line; a conflict and a duplicate follow their job.
std::string mixed_jobs(const std::string &prefix, std::size_t count) {
  std::string text;
  for (std::size_t job = 0; job < count; ++job) {
    const std::string id = R"({"operation_id":")" + prefix + std::to_string(job);
    text += id + R"(","numbers":[1]})" + "\n";
    if (job % 8 == 0) text += id + R"(","numbers":[1]})" + "\n";
    if (job % 8 == 1) text += id + R"(","numbers":[2]})" + "\n";
    if (job % 8 == 2) text += id + R"(-","type":"unheard-of"})" + "\n";
    if (job % 8 == 3) text += id + R"(-","numbers":[9223372036854775807,1]})" + "\n";
  }
  return text;
}

Arguments tracing(const std::string &when) {
  return {"/usr/bin/strace",
          "-D",
          "-f",
          "-qq",
          "-o",
          "/dev/null",
          "-e",
          "trace=fdatasync",
          "-e",
          "inject=fdatasync:error=EIO:when=" + when};
}

} // namespace

TEST_CASE("every delivery is counted once as what became of it") {
  WorkerProcess worker;
  worker.start(json_log + Arguments{"--workers", "1", "--dead-letters-max", "3"});
  RawPeer peer(worker);
  peer.greet();
  const Bytes job = job_bytes("job", {1});
  CHECK(outcomes_of(peer.deliver(
            {job, job, job_bytes("job", {2}), job_bytes({.operation_id = "x", .numbers = {}, .type = "x"})})) ==
        "stored duplicate conflict invalid");
  peer.send(job_bytes("bare", {1}));
  peer.send("no job at all"); // the third dead letter
  CHECK(outcomes_of(peer.deliver({job})) == "duplicate");
  peer.send("nor is this"); // for which there is no room, and no reply
  CHECK(outcomes_of(peer.deliver({job_bytes("overflow", {INT64_MAX, 1}), job})) == "busy duplicate");
  CHECK(drain(worker) == Figures{{"deliveries", 10},
                                 {"stored", 2},
                                 {"duplicate", 3},
                                 {"conflict", 1},
                                 {"invalid", 2},
                                 {"failed", 0},
                                 {"expired", 0},
                                 {"accepted", 0},
                                 {"busy", 1},
                                 {"unknown", 0},
                                 {"dropped", 1},
                                 {"queue_handled", 0},
                                 {"queue_refused", 0}});
}

TEST_CASE("the balance holds at ten drains in the middle of jobs of every kind and garbage at a full cap") {
  const Seed seed = seed_or(20'261'130);
  std::mt19937_64 random(seed.number);
  CAPTURE(seed);
  Figures total;
  WorkerProcess worker;
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    // The cap is met in the middle of each round, and stays met.
    worker.start(json_log + Arguments{"--dead-letters-max", std::to_string(100 * (round + 1))});
    Process sender(
        {.arguments = worker.send({"--window", "64"}), .input = mixed_jobs(std::to_string(round) + "-", 4000)});
    RawPeer stranger(worker, sender_id(0x22));
    std::size_t garbage = 0;
    for (std::uint_fast32_t lines = 1 + random() % 2000; lines > 0; --lines) {
      if (!sender.next_line()) break;
      if (lines % 10 == 0) stranger.send("garbage " + std::to_string(round) + " " + std::to_string(++garbage));
    }
    const Figures figures = drain(worker);
    check_balance(figures);
    for (const auto &[name, figure] : figures)
      total[name] += figure;
  }
  for (const char *name : {"stored", "duplicate", "conflict", "invalid", "failed", "busy", "dropped"}) {
    CAPTURE(name);
    CHECK(total[name] > 0);
  }
}

TEST_CASE("the balance holds where batches have failed and while the store is not available") {
  if (sanitized || ::access("/usr/bin/strace", X_OK) != 0) {
    MESSAGE("skipped: there is no strace, or a sanitizer beside it");
    return;
  }
  // Counted by thread: more than an opening makes. With a plus, every one from there on fails.
  for (const std::string when : {"15", "40", "15+"}) {
    CAPTURE(when);
    WorkerProcess worker;
    worker.start(); // creates the database, so that the next opening writes little
    CHECK(worker.stop() == 0);
    worker.start(json_log + Arguments{"--workers", "1"}, tracing(when));
    Process sender({.arguments = worker.send({"--window", "16"}), .input = jobs_as_json("job", 2000)});
    CHECK(eventually([&] {
      return run_command({"stats", "--data", worker.data().string()}).line()["unknown"] != "0";
    }));
    const Figures figures = drain(worker);
    check_balance(figures);
    CHECK(figures.at("unknown") > 0);
  }
}
