// The same key with another intent: the first one wins, and the other is kept as a dead letter.
#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

const Bytes demo = job_bytes("demo-1", {1, 2, 3});
const Bytes other = job_bytes("demo-1", {9});

Line stored_row(const WorkerProcess &worker) {
  const Finished got = run_command({"get", "demo-1", "--data", worker.data().string()});
  CHECK(got.exit == 0);
  return got.line();
}

// That 6 stays, and that the one dead letter holds everything about the conflict.
void check_conflict_kept(const WorkerProcess &worker, const std::string &deliveries) {
  CHECK(worker.rows() == Rows{1, 1});
  const Line row = stored_row(worker);
  CHECK(row["result"] == "6");
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  const Line &letter = letters.front();
  CHECK(letter["reason"] == "conflict");
  CHECK(letter["operation_id"] == "demo-1");
  CHECK(letter["type"] == "sum");
  CHECK(letter["bytes"] == to_hex(other));
  CHECK(letter["job"] == R"({"operation_id":"demo-1","numbers":[9]})");
  CHECK(letter["stored_digest"] == row["digest"]);
  CHECK(letter["offered_digest"].size() == 64);
  CHECK(letter["offered_digest"] != row["digest"]);
  CHECK(letter["deliveries"] == deliveries);
  CHECK(letter["sender"] == handle_of(sender_id(0x11)));
  CHECK(letter["sender_id"] == to_hex(sender_id(0x11).view()));
}

} // namespace

TEST_CASE("another payload under the same id is a conflict and the first result stays") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(demo).outcome == Outcome::stored);
  const OwnReply refused = peer.deliver_one(other);
  CHECK(refused.outcome == Outcome::conflict);
  CHECK(refused.result.empty());
  CHECK_FALSE(refused.detail.empty());
  check_conflict_kept(worker, "1");

  CHECK(peer.deliver_one(other).outcome == Outcome::conflict); // warm
  check_conflict_kept(worker, "2");
  CHECK(peer.deliver_one(demo).result == integer_result(6));
}

TEST_CASE("a conflict within one batch is told from the duplicate beside it") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto replies = peer.deliver({demo, other, demo});
  CHECK(outcomes_of(replies) == "stored conflict duplicate");
  check_conflict_kept(worker, "1");
}

TEST_CASE("a conflict stays a conflict after a restart and after kill -9") {
  WorkerProcess worker;
  worker.start();
  {
    RawPeer peer(worker);
    peer.greet();
    CHECK(peer.deliver_one(demo).outcome == Outcome::stored);
  }
  CHECK(worker.stop() == 0);
  worker.start();
  {
    RawPeer peer(worker);
    peer.greet();
    CHECK(peer.deliver_one(other).outcome == Outcome::conflict);
  }
  check_conflict_kept(worker, "1");
  worker.kill_now();
  check_conflict_kept(worker, "1");
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(other).outcome == Outcome::conflict);
  check_conflict_kept(worker, "2");
}

TEST_CASE("the same conflict ten times is one dead letter with a count of ten") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(demo).outcome == Outcome::stored);
  for (const OwnReply &reply : peer.deliver(std::vector<Bytes>(5, other)))
    CHECK(reply.outcome == Outcome::conflict);
  for (int time = 0; time < 5; ++time)
    CHECK(peer.deliver_one(other).outcome == Outcome::conflict);
  check_conflict_kept(worker, "10");
}

TEST_CASE("the same numbers in another order are a conflict") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(demo).outcome == Outcome::stored);
  CHECK(peer.deliver_one(job_bytes("demo-1", {3, 2, 1})).outcome == Outcome::conflict);
  CHECK(stored_row(worker)["result"] == "6");
}

TEST_CASE("the send command prints a conflict and exits with 1") {
  WorkerProcess worker;
  worker.start({"--workers", "1"}); // which takes the jobs in the order of the lines
  const Finished sent = run_command(worker.send(), "{\"operation_id\":\"demo-1\",\"numbers\":[1,2,3]}\n"
                                                   "{\"operation_id\":\"demo-1\",\"numbers\":[9]}\n"
                                                   "{\"operation_id\":\"demo-2\",\"numbers\":[9]}\n");
  CHECK(sent.exit == 1);
  CHECK(field_of(sent.lines(), "outcome") == "stored conflict stored");
  REQUIRE(sent.lines().size() == 3);
  CHECK(sent.lines()[1].names() == "operation_id outcome detail attempts");
  CHECK(worker.rows() == Rows{2, 1});
}

TEST_CASE("a conflicting and a bad job among good ones get their own outcomes") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(demo).outcome == Outcome::stored);
  std::vector<Bytes> jobs;
  for (int job = 0; job < 40; ++job)
    jobs.push_back(job_bytes("good-" + std::to_string(job), {job}));
  jobs[11] = other;
  jobs[23] = "not-json";
  const auto replies = peer.deliver(jobs);
  for (std::size_t at = 0; at < replies.size(); ++at) {
    const Outcome expected = at == 11 ? Outcome::conflict : at == 23 ? Outcome::invalid : Outcome::stored;
    CHECK(traits_of(replies[at].outcome).name == traits_of(expected).name);
  }
  CHECK(worker.rows() == Rows{39, 2});
}

TEST_CASE("two operations under one effect key share its one effect") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto job = [](std::string_view id, std::int64_t number, std::string_view effect_key) {
    return job_bytes(JobFields{.operation_id = id, .numbers = {number}, .effect_key = effect_key});
  };
  const auto replies = peer.deliver({job("a", 1, "invoice-7"), job("b", 1, "invoice-7"), job("c", 2, "invoice-7"),
                                     job("a", 1, "invoice-8"), job_bytes("invoice-7", {5})});
  CHECK(outcomes_of(replies) == "stored duplicate conflict stored stored");
  CHECK(worker.rows() == Rows{3, 1});
  const Finished got = run_command({"get", "invoice-7", "--effect-key", "--data", worker.data().string()});
  CHECK(got.line()["operation_id"] == "a");
  CHECK(got.line()["effect_key"] == "invoice-7");
}
