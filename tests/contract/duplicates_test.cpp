// The same job, delivered again in every way there is: one result, and the first answer each time.
#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

const Bytes demo_job = job_bytes("demo-1", {1, 2, 3});

// A job {"numbers": [1, 2, 3], "operation_id": "demo-1"} in the order and the widths that these bytes have.
Bytes by_hand(const Bytes &first, const Bytes &second) {
  return "\x82" + first + second;
}

Bytes name_and_id() {
  Bytes out;
  messagepack::Writer(out).string("operation_id").string("demo-1");
  return out;
}

Bytes name_and_numbers(const Bytes &numbers) {
  Bytes out;
  messagepack::Writer(out).string("numbers").raw(numbers);
  return out;
}

void check_all_duplicate(const std::vector<OwnReply> &replies) {
  for (const OwnReply &reply : replies) {
    CHECK(traits_of(reply.outcome).name == "duplicate");
    CHECK(reply.result == integer_result(6));
    CHECK(reply.detail.empty());
  }
}

} // namespace

TEST_CASE("the send command prints the stored result and then the duplicate") {
  WorkerProcess worker;
  worker.start();
  const std::string job = "{\"operation_id\":\"demo-1\",\"numbers\":[1,2,3]}\n";
  const Finished first = run_command(worker.send(), job);
  CHECK(first.exit == 0);
  CHECK(first.line().names() == "operation_id outcome result attempts");
  CHECK(first.line()["operation_id"] == "demo-1");
  CHECK(first.line()["outcome"] == "stored");
  CHECK(first.line()["result"] == "6");
  const Finished second = run_command(worker.send(), job);
  CHECK(second.exit == 0);
  CHECK(second.line().names() == "operation_id outcome result attempts");
  CHECK(second.line()["outcome"] == "duplicate");
  CHECK(second.line()["result"] == "6");
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("two copies are delivered as two and both outcomes are printed") {
  WorkerProcess worker;
  worker.start();
  const Finished sent = run_command(worker.send({"--copies", "2"}), jobs_as_json("copy", 100));
  CHECK(sent.exit == 0);
  CHECK(tally_text(sent.lines(), "outcome") == "duplicate 100, stored 100");
  for (const auto &[id, times] : tally(sent.lines(), "operation_id"))
    CHECK(times == 2);
  CHECK(worker.rows() == Rows{100, 0});
}

TEST_CASE("a job again in the same batch is a duplicate") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto replies = peer.deliver({demo_job, demo_job, demo_job});
  CHECK(outcomes_of(replies) == "stored duplicate duplicate");
  for (const OwnReply &reply : replies)
    CHECK(reply.result == integer_result(6));
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("a job again in another batch or by another sender is a duplicate") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(outcomes_of(peer.deliver({demo_job, job_bytes("other", {1})})) == "stored stored");
  check_all_duplicate(peer.deliver({demo_job, demo_job}));
  RawPeer other(worker, sender_id(0x22));
  other.greet();
  check_all_duplicate(other.deliver({demo_job}));
  CHECK(worker.rows() == Rows{2, 0});
}

TEST_CASE("a job again after a restart is a duplicate") {
  WorkerProcess worker;
  worker.start();
  {
    RawPeer peer(worker);
    peer.greet();
    CHECK(outcomes_of(peer.deliver({demo_job})) == "stored");
  }
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{1, 0});
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  check_all_duplicate(peer.deliver({demo_job, demo_job}));
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("a job again after kill -9 is a duplicate") {
  WorkerProcess worker;
  worker.start();
  {
    RawPeer peer(worker);
    peer.greet();
    CHECK(outcomes_of(peer.deliver({demo_job})) == "stored");
  }
  worker.kill_now();
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  check_all_duplicate(peer.deliver({demo_job, demo_job}));
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("each start is another boot and the boots are counted") {
  WorkerProcess worker;
  worker.start();
  const std::string first = worker.ready()["boot"];
  worker.kill_now();
  worker.start();
  const std::string second = worker.ready()["boot"];
  CHECK(first.size() == 32);
  CHECK(first.substr(0, 16) == "0000000000000001");
  CHECK(second.substr(0, 16) == "0000000000000002");
  CHECK(first.substr(16) != second.substr(16));
  RawPeer peer(worker);
  CHECK(to_hex(peer.greet().boot.view()) == second);
}

TEST_CASE("the order of the names and the width of the integers make no other job") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one(demo_job).outcome == Outcome::stored);
  const Bytes one_byte("\x93\x01\x02\x03", 4);
  const Bytes wide("\x93\xD0\x01\xCD\x00\x02\xD3\x00\x00\x00\x00\x00\x00\x00\x03", 15);
  const Bytes array32 =
      Bytes("\xDD\x00\x00\x00\x03", 5) + Bytes("\x01\xCC\x02\xCF\x00\x00\x00\x00\x00\x00\x00\x03", 12);
  check_all_duplicate(peer.deliver({
      by_hand(name_and_numbers(one_byte), name_and_id()), by_hand(name_and_id(), name_and_numbers(wide)),
      by_hand(name_and_numbers(array32), name_and_id()),
      Bytes("\xDE\x00\x02", 3) + name_and_id() + name_and_numbers(one_byte), // a map in a wider form
  }));
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("a weaker durability is named in every line that it concerns") {
  WorkerProcess worker;
  worker.start({"--durability", "page-cache"});
  CHECK(worker.ready()["durability"] == "page-cache");
  const Finished first = run_command(worker.send(), jobs_as_json("weak", 1));
  CHECK(first.exit == 0);
  CHECK(first.line()["outcome"] == "stored");
  CHECK(first.line()["durability"] == "page-cache");
  worker.kill_now(); // the page cache outlives the process

  worker.start({"--durability", "page-cache"});
  CHECK(worker.ready()["durability"] == "page-cache");
  const Finished second = run_command(worker.send(), jobs_as_json("weak", 1));
  CHECK(second.line()["outcome"] == "duplicate");
  CHECK(second.line()["durability"] == "page-cache");
  CHECK(run_command({"get", "weak-1", "--data", worker.data().string()}).line()["durability"] == "page-cache");
  CHECK(worker.process().errors().find("durability.weak") != std::string::npos);
  CHECK(worker.stop() == 0);

  worker.start();
  CHECK(worker.ready()["durability"] == "fsync");
  CHECK(run_command(worker.send(), jobs_as_json("strong", 1)).line()["durability"] == "absent");
}
