// Several senders, also under one sender id: a reply settles only the job whose bytes it answers.
#include <doctest/doctest.h>

#include "onced/sender.hpp"
#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

struct Environment {
  SystemClock clock;
  SystemRandom random;
  SilentLog log;
};

std::unique_ptr<Sender> start_sender(const WorkerProcess &worker, Environment &environment) {
  SenderOptions options;
  options.jobs_endpoint = worker.jobs();
  options.replies_endpoint = worker.replies();
  options.sender_id = sender_id(0x33);
  options.acknowledgement_timeout = std::chrono::milliseconds(100);
  options.acknowledgement_timeout_max = std::chrono::milliseconds(400);
  auto started = Sender::start(options, environment.clock, environment.random, environment.log);
  REQUIRE(started.has_value());
  return std::move(*started);
}

// Submits the jobs PREFIX-1, … whose numbers are `number`, and checks that each settles with its own sum.
void check_settles(Sender &sender, const std::string &prefix, std::int64_t number) {
  constexpr std::size_t jobs = 20;
  for (std::size_t job = 1; job <= jobs; ++job)
    REQUIRE(sender.submit(job_bytes(prefix + std::to_string(job), {number}), patience_from_now()).has_value());
  for (std::size_t settled = 0; settled < jobs; ++settled) {
    const auto next = sender.next_settled(patience_from_now());
    REQUIRE(next.has_value());
    CHECK(traits_of(next->outcome).success);
    CHECK(next->result == integer_result(number));
  }
}

} // namespace

TEST_CASE("replies go over each connection that greeted under a sender id and name the job by its tag") {
  WorkerProcess worker;
  worker.start();
  RawPeer first(worker);
  RawPeer second(worker);
  first.greet();
  second.greet();
  const Bytes of_first = job_bytes("of-first", {1});
  const Bytes of_second = job_bytes("of-second", {2});
  first.send_batch({of_first}, 1);
  for (RawPeer *peer : {&first, &second}) {
    const auto replies = peer->next_replies();
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].sequence == 1);
    CHECK(replies[0].tag == tag_of(of_first));
    CHECK(replies[0].tag != tag_of(of_second)); // so the second, which sent another job as its first, passes it over
  }
  first.send_batch({of_first}, 1);
  CHECK(outcomes_of(first.next_replies()) == "duplicate");
}

TEST_CASE("two senders with one sender id settle only their own jobs") {
  WorkerProcess worker;
  worker.start();
  Environment environment;
  const auto first = start_sender(worker, environment);
  check_settles(*first, "first-", 1); // it has greeted
  {
    const auto second = start_sender(worker, environment);
    check_settles(*second, "second-", 2); // and so has this one
    // The first's next sequences: their replies go to both, and the second ignores them.
    check_settles(*first, "first-again-", 3);
  }
  check_settles(*first, "first-at-last-", 4);
  CHECK(worker.rows() == Rows{80, 0});
}

TEST_CASE("replies with a wrong tag or sequence or to a job that was never sent settle nothing") {
  FakeWorker worker;
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 1)});
  BootId boot;
  boot.bytes.fill(1);
  worker.answer_next(wire::encode_greeting(boot, Durability::fsync));
  const wire::Batch &batch = worker.next_batch();
  REQUIRE(batch.entries.size() == 1);
  const wire::BatchEntry &job = batch.entries[0];
  Tag forged = job.tag;
  forged.bytes[7] ^= 1U;
  const Bytes wrong = integer_result(999);
  const Bytes right = integer_result(2);
  wire::RepliesEncoder replies(boot, Durability::fsync);
  replies.add({.sequence = job.sequence, .tag = forged, .outcome = Outcome::stored, .result = wrong, .detail = {}});
  replies.add({.sequence = job.sequence, .tag = forged, .outcome = Outcome::invalid, .result = {}, .detail = "forged"});
  replies.add({.sequence = Sequence{number_of(job.sequence) + 1},
               .tag = job.tag,
               .outcome = Outcome::stored,
               .result = wrong,
               .detail = {}});
  replies.add({.sequence = job.sequence, .tag = job.tag, .outcome = Outcome::stored, .result = right, .detail = {}});
  worker.say("no message at all");
  worker.say(replies.take().front());
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.line()["outcome"] == "stored");
  CHECK(sent.line()["result"] == "2");
}

TEST_CASE("eight senders of the same jobs at once leave one result a job") {
  WorkerProcess worker;
  worker.start({"--workers", "4"});
  const std::string jobs = jobs_as_json("shared", 2000);
  std::vector<std::unique_ptr<Process>> senders;
  for (int sender = 0; sender < 8; ++sender)
    senders.push_back(std::make_unique<Process>(Process::Options{.arguments = worker.send(), .input = jobs}));
  std::size_t stored = 0;
  for (const auto &sender : senders) {
    const Finished sent = finish(*sender);
    CHECK(sent.exit == 0);
    auto outcomes = tally(sent.lines(), "outcome");
    stored += outcomes["stored"];
    CHECK(outcomes["stored"] + outcomes["duplicate"] == 2000);
  }
  // A stored outcome whose reply was lost is a duplicate to its sender.
  CHECK(stored <= 2000);
  CHECK(worker.rows() == Rows{2000, 0});
}
