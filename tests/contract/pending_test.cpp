// `pending list|show|resolve`, `get` and `audit` of queued jobs by the command, on a running worker and on none. Not
// here: the handing over of jobs, so they are put into the store by this test.
#include <doctest/doctest.h>

#include "support/queue_harness.hpp"
#include "support/raw_database.hpp"
#include "support/raw_peer.hpp"
#include "wire/query.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A data directory with a held job, one that waits under an effect key, and one that has failed. The worker knows no
// handler for them, so it leaves them as they are.
struct Queue {
  Queue() {
    const auto lock = DirectoryLock::take(directory.path() / "data", DirectoryLock::Mode::exclusive);
    REQUIRE(lock.has_value());
    QueueHarness harness(directory.path() / "data");
    CHECK(harness.commit({pay_job("held"), slow_job("waiting", 1, "event-7"), slow_job("failed")}).size() == 3);
    CHECK(harness.receive("held", "pay").answer == store::Received::Answer::job);
    CHECK(harness.settle("held", unknown("no answer"), "pay") == store::QueueSettled::held);
    CHECK(harness.receive("failed").answer == store::Received::Answer::job);
    CHECK(harness.settle("failed", refused("no such picture")) == store::QueueSettled::failed);
  }

  [[nodiscard]] Finished run(const Arguments &arguments) const {
    return run_command(arguments + Arguments{"--data", (directory.path() / "data").string()});
  }
  [[nodiscard]] Finished resolve(const Arguments &more) const {
    return run(Arguments{"pending", "resolve", "held", "--type", "pay", "--by", "kim", "--why", "INC-7"} + more);
  }

  ScratchDirectory directory;
  WorkerProcess worker{directory.path() / "data"};
};

} // namespace

TEST_CASE("queued jobs are listed and shown the same by a running worker and by none") {
  Queue queue;
  std::string printed;
  for (const bool running : {false, true}) {
    CAPTURE(running);
    if (running) queue.worker.start();
    const Finished all = queue.run({"pending", "list"});
    CHECK(all.exit == 0);
    CHECK(all.lines().size() == 2);
    CHECK(all.lines()[0].names() ==
          "operation_id type effect_key idempotency_key state owner effect_unknown receives receives_total "
          "redrives accepted_at changed_at error");
    CHECK(field_of(all.lines(), "operation_id") == "held waiting");
    CHECK(field_of(all.lines(), "effect_key") == "null event-7");
    CHECK(field_of(queue.run({"pending", "list", "--held"}).lines(), "error") == "no answer");
    CHECK(field_of(queue.run({"pending", "list", "--type", "slow"}).lines(), "state") == "waiting");
    CHECK(queue.run({"pending", "list", "--limit", "1"}).lines().size() == 1);

    const Finished shown = queue.run({"pending", "show", "held", "--type", "pay"});
    CHECK(shown.exit == 0);
    const Line line = shown.line();
    CHECK(line["state"] == "held");
    CHECK(line["errors"] == "[\"no answer\"]");
    CHECK(line["token"] == "00000000000000010000000000000001");
    CHECK(line["sender"] == "749cc642");
    CHECK(line["sender_id"] == "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e");
    CHECK(line["bytes"] == to_hex(pay_job("held")));
    CHECK(line["job"] == "{\"operation_id\":\"held\",\"numbers\":[1],\"type\":\"pay\"}");
    CHECK(queue.run({"pending", "show", "event-7", "--effect-key"}).line()["operation_id"] == "waiting");
    const Finished absent = queue.run({"pending", "show", "held"});
    CHECK(absent.exit == 1);
    CHECK(absent.output == "{\"operation_id\":\"held\",\"type\":\"sum\",\"found\":false}\n");

    const std::string output = all.output + shown.output;
    CHECK((printed.empty() || printed == output));
    printed = output;
  }
  const Finished asked = run_command({"pending", "list", "--replies", queue.worker.replies()});
  CHECK(asked.exit == 0);
  CHECK(field_of(asked.lines(), "operation_id") == "held waiting");
  const Line shown =
      run_command({"pending", "show", "held", "--type", "pay", "--replies", queue.worker.replies()}).line();
  CHECK(shown["sender"] == "749cc642");
  CHECK(shown["sender_id"] == "absent");
}

TEST_CASE("a held job is resolved by its owner on a running worker and on none and the audit names it") {
  for (const bool running : {false, true}) {
    for (const bool applied : {false, true}) {
      CAPTURE(running);
      CAPTURE(applied);
      Queue queue;
      if (running) queue.worker.start();
      const Finished resolved =
          queue.resolve(applied ? Arguments{"--applied", "[\"receipt\", 12.0]"} : Arguments{"--absent"});
      CHECK(resolved.exit == 0);
      CHECK(resolved.errors.empty());
      CHECK(resolved.output == std::string("{\"operation_id\":\"held\",\"type\":\"pay\",\"outcome\":\"") +
                                   (applied ? "stored" : "accepted") + "\",\"resolved\":true}\n");
      const Finished got = queue.run({"get", "held", "--type", "pay"});
      CHECK(got.exit == (applied ? 0 : 1));
      CHECK(got.line()["result"] == (applied ? "[\"receipt\",12]" : "null"));
      CHECK(queue.run({"pending", "list", "--held"}).output.empty());

      const Finished again = queue.resolve({"--absent"});
      CHECK(again.exit == 1);
      CHECK(again.line()["outcome"] == "not_found");
      CHECK(again.line()["resolved"] == "false");
      CHECK(!again.line()["detail"].empty());
      const Line audit = queue.run({"audit"}).line();
      CHECK(audit["action"] == "resolve");
      CHECK(audit["id"] == "null");
      CHECK(audit["operation_id"] == "held");
      CHECK(audit["type"] == "pay");
      CHECK(audit["outcome"] == (applied ? "stored" : "accepted"));
      CHECK(audit["by"] == "kim");
      CHECK(audit["why"] == "INC-7");
      const Line verified = queue.run({"verify"}).line();
      CHECK(verified["queued"] == (applied ? "1" : "2"));
      CHECK(verified["problems"] == "0");
    }
  }
}

TEST_CASE("a resolution that is asked for wrongly is refused before anything is done") {
  Queue queue;
  queue.worker.start();
  CHECK(queue.resolve({}).exit == 64);
  CHECK(queue.resolve({"--applied", "1", "--absent"}).exit == 64);
  CHECK(queue.resolve({"--applied", "no json"}).exit == 64);
  CHECK(queue.resolve({"--applied", "18446744073709551616"}).exit == 64);
  const Arguments held{"pending", "resolve", "held", "--type", "pay", "--absent"};
  const auto refused_naming = [&](const Arguments &more, const std::string &option) {
    const Finished refused = queue.run(held + more);
    CHECK(refused.exit == 64);
    CHECK(refused.errors.find("onced: " + option) != std::string::npos);
  };
  refused_naming({"--why", "INC-7"}, "--by");
  refused_naming({"--by", "kim"}, "--why");
  refused_naming({"--by", "", "--why", "INC-7"}, "--by");
  refused_naming({"--by", "kim", "--why", std::string(2000, 'y')}, "--why");
  CHECK(run_command({"pending", "resolve", "held", "--type", "pay", "--absent", "--by", "kim"}).exit == 64);
  const Arguments by{"--absent", "--by", "kim", "--why", "INC-7"};
  CHECK(queue.run(Arguments{"pending", "resolve", "waiting", "--type", "slow"} + by).exit == 1);
  CHECK(queue.run(Arguments{"pending", "resolve", "event-7", "--effect-key"} + by).exit == 1);
  const std::string large = "\"" + std::string(limits::query_bytes_max, 'r') + "\"";
  CHECK(queue.resolve({"--applied", large}).exit == 64);
  Bytes request;
  messagepack::Writer(request).map(1).string("query").string("pending resolve");
  const auto refused = wire::ask(queue.worker.replies(), request, patience_from_now());
  REQUIRE(refused.has_value());
  CHECK(refused->find("it is not answered over the network") != Bytes::npos);
  CHECK(queue.run({"audit"}).output.empty());
  CHECK(field_of(queue.run({"pending", "list", "--held"}).lines(), "operation_id") == "held");
  CHECK(queue.worker.stop() == 0);
  CHECK(queue.resolve({"--applied", large}).exit == 0); // on the database itself it has no frame to fit
}

TEST_CASE("get prints the row of a job without a result and exits with 1") {
  Queue queue;
  const Finished pending = queue.run({"get", "held", "--type", "pay"});
  CHECK(pending.exit == 1);
  CHECK(pending.line()["phase"] == "pending");
  CHECK(pending.line()["result"] == "null");
  const Finished failed = queue.run({"get", "failed", "--type", "slow"});
  CHECK(failed.exit == 1);
  CHECK(failed.line()["phase"] == "failed");
  const Line letter = queue.run({"dead-letters", "list"}).line();
  CHECK(letter["operation_id"] == "failed");
  CHECK(letter["effect_unknown"] == "absent");
  const Line shown = queue.run({"dead-letters", "show", letter["id"]}).line();
  CHECK(shown["errors"] == "[\"no such picture\"]");
  CHECK(shown["effect_unknown"] == "false");
}

TEST_CASE("damaged rows of the queue are told after all the others") {
  Queue queue;
  RawDatabase(queue.directory.path() / "data").put("queue", key_of("held", "pay"), "garbage");
  const Finished listed = queue.run({"pending", "list"});
  CHECK(listed.exit == 65);
  CHECK(field_of(listed.lines(), "operation_id") == "waiting");
  CHECK(listed.errors.find("damaged") != std::string::npos);
}
