// Another protocol version: said so, and nothing is settled or kept.
#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A batch as a later version might write it: only its beginning is known to every version.
Bytes batch_of_version(std::uint64_t version) {
  Bytes entry;
  messagepack::Writer(entry).array(2).positive(1).binary(job_bytes("later", {1}));
  Bytes out;
  messagepack::Writer(out).array(4).positive(version).binary(sender_id(0x11).view()).array(1).raw(entry).string("new");
  return out;
}

Bytes hello_of_version(std::uint64_t version) {
  Bytes out;
  messagepack::Writer(out).array(3).positive(version).binary(sender_id(0x11).view()).string("new");
  return out;
}

} // namespace

TEST_CASE("a batch of version 2 is answered as unsupported and not kept") {
  WorkerProcess worker;
  worker.start({"--workers", "1"});
  RawPeer peer(worker);
  peer.greet();
  for (const std::uint64_t version : {2U, 0U, 200U}) {
    CAPTURE(version);
    peer.send(batch_of_version(version));
    CHECK(peer.next_framing() == wire::WorkerFraming::unsupported);
    CHECK(peer.versions() == std::vector<std::uint64_t>{1});
  }
  CHECK(peer.deliver_one(job_bytes("now", {1})).outcome == Outcome::stored); // the next reply, so no other one came
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("a greeting of version 2 is answered as unsupported") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.say(hello_of_version(2));
  CHECK(peer.next_framing() == wire::WorkerFraming::unsupported);
  CHECK(peer.versions() == std::vector<std::uint64_t>{1});
}

TEST_CASE("a sender whose worker speaks another version settles nothing and exits with 69") {
  FakeWorker worker;
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 3)});
  worker.answer_next(wire::encode_unsupported());
  const Finished sent = finish(sender);
  CHECK(sent.exit == 69);
  for (const auto &[outcome, times] : tally(sent.lines(), "outcome"))
    CHECK(outcome == "unsettled");
  CHECK(sent.errors.find("does not speak our protocol version") != std::string::npos);
}

TEST_CASE("a sender that is told so in the middle keeps what is settled and exits with 69") {
  FakeWorker worker;
  Process sender({.arguments = worker.send({"--window", "1"}), .input = jobs_as_json("job", 2)});
  BootId boot;
  boot.bytes.fill(1);
  worker.answer_next(wire::encode_greeting(boot, Durability::fsync));
  const wire::Batch &batch = worker.next_batch();
  REQUIRE(batch.entries.size() == 1);
  wire::RepliesEncoder replies(boot, Durability::fsync);
  const Bytes result = integer_result(2);
  replies.add({.sequence = batch.entries[0].sequence,
               .tag = batch.entries[0].tag,
               .outcome = Outcome::stored,
               .result = result,
               .detail = {}});
  worker.say(replies.take().front());
  worker.say(wire::encode_unsupported());
  const Finished sent = finish(sender);
  CHECK(sent.exit == 69);
  CHECK(field_of(sent.lines(), "outcome") == "stored unsettled");
}

TEST_CASE("a query to a worker of another version exits with 69") {
  FakeWorker worker;
  Process query({.arguments = {"count", "--replies", worker.replies_endpoint()}});
  worker.answer_next(wire::encode_unsupported());
  const Finished asked = finish(query);
  CHECK(asked.exit == 69);
  CHECK(asked.output.empty());
}
