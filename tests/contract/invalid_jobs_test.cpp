// Bytes that are no valid job, as the job of a batch: each is `invalid` by itself, and spoils nothing around it.
#include <doctest/doctest.h>

#include "contract/hostile_bytes.hpp"
#include "onced/digest.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("bytes that are no job are invalid and their neighbours and the next job are stored") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
  for (const HostileBytes &hostile : hostile_bytes()) {
    CAPTURE(hostile.name);
    const auto next = [&] { return job_bytes("good-" + std::to_string(++good), {1}); };
    const auto replies = peer.deliver({next(), hostile.bytes, next()});
    CHECK(outcomes_of(replies) == "stored invalid stored");
    CHECK(replies[1].result.empty());
    if (hostile.detail.empty()) {
      CHECK_FALSE(replies[1].detail.empty()); // said by a handler, in words
    } else {
      CHECK(replies[1].detail == hostile.detail);
    }
    CHECK(peer.deliver_one(next()).outcome == Outcome::stored);
    CHECK(worker.rows() == Rows{good, ++bad});
  }
}

TEST_CASE("the dead letter of each invalid job keeps its bytes and its reason") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  std::map<std::string, std::string> sent; // the detail by the bytes
  for (const HostileBytes &hostile : hostile_bytes()) {
    const OwnReply reply = peer.deliver_one(hostile.bytes);
    sent[to_hex(hostile.bytes)] = reply.detail;
  }
  CHECK(worker.stop() == 0);
  std::map<std::string, std::string> kept;
  for (const Line &letter : dead_letters(worker.data())) {
    CHECK(letter["reason"] == "invalid");
    CHECK(letter["deliveries"] == "1");
    CHECK(letter["sender"] == handle_of(sender_id(0x11)));
    kept[letter["bytes"]] = letter["detail"];
  }
  CHECK(kept == sent);
}

TEST_CASE("depth 16 is not too deep") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  // It parses; only its handler does not know the field.
  const OwnReply reply = peer.deliver_one(job_and(nested_pair(16), 1));
  CHECK(reply.outcome == Outcome::invalid);
  CHECK(reply.detail != "too_deep");
}

TEST_CASE("the same invalid job ten times is one dead letter with a count of ten") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  for (const OwnReply &reply : peer.deliver(std::vector<Bytes>(10, "not-json")))
    CHECK(reply.outcome == Outcome::invalid);
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  CHECK(letters.front()["deliveries"] == "10");
}

TEST_CASE("a committed job stays a duplicate whatever a later program thinks of it") {
  // The key is looked up before type and schema, so the same id with an unknown type is another key, and invalid.
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  Bytes field;
  messagepack::Writer(field).string("unit").string("EUR");
  const Bytes with_unknown_field = job_and(field, 1);
  CHECK(peer.deliver_one(job_bytes("bad", {1})).outcome == Outcome::stored);
  CHECK(peer.deliver_one(with_unknown_field).outcome == Outcome::conflict); // not `invalid`: its key is there
}

TEST_CASE("the raw option sends a file's bytes as one job and prints what became of it") {
  WorkerProcess worker;
  worker.start();
  for (const HostileBytes &hostile : hostile_bytes()) {
    CAPTURE(hostile.name);
    const Finished sent = run_command(worker.send({"--raw"}), hostile.bytes);
    CHECK(sent.exit == 1);
    CHECK(sent.line()["outcome"] == "invalid");
    if (!hostile.detail.empty()) CHECK(sent.line()["detail"] == hostile.detail);
  }
  const Finished sent = run_command(worker.send({"--raw"}), job_bytes("demo-1", {1, 2, 3}));
  CHECK(sent.exit == 0);
  CHECK(sent.line()["operation_id"] == "demo-1");
  CHECK(sent.line()["result"] == "6");
}

TEST_CASE("a job over the limit is settled by the sender itself and costs its neighbours nothing") {
  WorkerProcess worker;
  worker.start();
  const Finished largest = run_command(worker.send({"--raw"}), Bytes(limits::job_bytes_max, '\xC1'));
  CHECK(largest.exit == 1);
  CHECK(largest.line()["detail"] == "malformed"); // said by the worker
  CHECK(largest.line()["attempts"] != "0");
  const Finished too_large = run_command(worker.send({"--raw"}), Bytes(limits::job_bytes_max + 1, '\xC1'));
  CHECK(too_large.exit == 1);
  CHECK(too_large.line()["detail"] == "too_large");
  CHECK(too_large.line()["attempts"] == "0");
  CHECK(worker.rows() == Rows{0, 1});
}
