// Redrive, purge, audit and stats by the command, on a running worker and on none. The verdicts themselves are tested
// on the store; here it is who may change what, that it lasts, and what is printed.
#include <thread>

#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"
#include "wire/query.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

const Arguments by_kim{"--by", "kim", "--why", "INC-7"};

// The ids of dead letters by what they are, of a worker that `fill` was called for.
struct Letters {
  std::string parts; // a job whose message was refused for its second part: the one that succeeds when redriven
  std::string conflict;
  std::string not_json;
  std::string failed;
};

Letters letters_of(const WorkerProcess &worker) {
  Letters letters;
  for (const Line &letter : dead_letters(worker.data())) {
    if (letter["detail"] == "message_multipart")
      letters.parts = letter["id"];
    else if (letter["reason"] == "conflict")
      letters.conflict = letter["id"];
    else if (letter["reason"] == "failed")
      letters.failed = letter["id"];
    else
      letters.not_json = letter["id"];
  }
  return letters;
}

// A running worker with one result and four dead letters.
Letters fill(WorkerProcess &worker, const Arguments &more = {}) {
  worker.start(more);
  RawPeer peer(worker);
  peer.greet();
  CHECK(outcomes_of(peer.deliver({job_bytes("demo-1", {1}), job_bytes("demo-1", {9}), "not-json",
                                  job_bytes("big", {INT64_MAX, 1})})) == "stored conflict invalid failed");
  peer.send_parts({job_bytes("demo-2", {4}), "and more"});
  CHECK(eventually([&] { return worker.rows() == Rows{1, 4}; }));
  return letters_of(worker);
}

Finished change(const WorkerProcess &worker, const std::string &what, const Arguments &more) {
  return run_command(Arguments{"dead-letters", what, "--data", worker.data().string()} + by_kim + more);
}

std::vector<Line> audit(const WorkerProcess &worker) {
  const Finished printed = run_command({"audit", "--data", worker.data().string()});
  CHECK(printed.exit == 0);
  return printed.lines();
}

// The answer's error code to a request with these texts, asked over the network.
std::string refusal_over_the_network(const WorkerProcess &worker, const std::map<std::string, std::string> &texts) {
  Bytes request;
  messagepack::Writer writer(request);
  writer.map(texts.size());
  for (const auto &[name, text] : texts)
    writer.string(name).string(text);
  const auto answer = wire::ask(worker.replies(), request, patience_from_now());
  REQUIRE(answer.has_value());
  std::vector<messagepack::Token> tokens;
  REQUIRE(messagepack::tokenize(*answer, tokens, 64));
  messagepack::TokenReader reader(tokens);
  if (reader.map() != 1 || reader.string() != "error" || reader.map() != 4 || reader.string() != "code") return "none";
  return std::string(reader.string());
}

std::uint64_t number_in(const Line &line, const std::string &name) {
  return std::stoull(line[name]);
}

Line stats(const WorkerProcess &worker) {
  const Finished printed = run_command({"stats", "--data", worker.data().string()});
  CHECK(printed.exit == 0);
  return printed.line();
}

void check_balance(const Line &line) {
  std::uint64_t settled = number_in(line, "unknown") + number_in(line, "dropped");
  for (const OutcomeTraits &outcome : outcome_table)
    settled += number_in(line, std::string(outcome.name));
  CHECK(number_in(line, "deliveries") == settled);
}

} // namespace

TEST_CASE("redrive and purge do the same on a running worker and on none") {
  std::vector<std::string> printed;
  for (const bool running : {true, false}) {
    CAPTURE(running);
    WorkerProcess worker;
    const Letters letters = fill(worker);
    if (!running) CHECK(worker.stop() == 0);

    const Finished redriven = change(worker, "redrive", {letters.parts, letters.conflict, letters.parts});
    CHECK(redriven.exit == 1);
    const auto lines = redriven.lines();
    REQUIRE(lines.size() == 3);
    CHECK(field_of(lines, "id") == letters.parts + " " + letters.conflict + " " + letters.parts);
    CHECK(field_of(lines, "outcome") == "stored conflict not_found");
    CHECK(field_of(lines, "removed") == "true false false");
    CHECK(lines[1]["now_id"] == letters.conflict);
    CHECK(worker.rows() == Rows{2, 3});
    CHECK(run_command({"get", "demo-2", "--data", worker.data().string()}).line()["result"] == "4");

    const Finished purged = change(worker, "purge", {letters.not_json, letters.failed});
    CHECK(purged.exit == 0);
    CHECK(field_of(purged.lines(), "outcome") == "purged purged");
    CHECK(worker.rows() == Rows{2, 1});
    const auto left = dead_letters(worker.data());
    REQUIRE(left.size() == 1);
    CHECK(left[0]["id"] == letters.conflict);
    CHECK(left[0]["redrives"] == "1");

    const auto changes = audit(worker);
    CHECK(field_of(changes, "number") == "1 2 3 4");
    CHECK(field_of(changes, "action") == "redrive redrive purge purge");
    CHECK(field_of(changes, "outcome") == "stored conflict null null");
    CHECK(tally_text(changes, "by") == "kim 4");
    CHECK(tally_text(changes, "why") == "INC-7 4");
    CHECK(redriven.errors.empty());
    CHECK(purged.errors.empty());
    printed.push_back(redriven.output + purged.output);
  }
  CHECK(printed[0] == printed[1]);
}

TEST_CASE("nothing is changed and no audit is read over the network") {
  WorkerProcess worker;
  const Letters letters = fill(worker);
  for (const std::string query : {"dead-letters redrive", "dead-letters purge", "audit"}) {
    CAPTURE(query);
    CHECK(refusal_over_the_network(worker, {{"query", query}, {"id", letters.parts}, {"by", "kim"}, {"why", "x"}}) ==
          "usage");
  }
  CHECK(refusal_over_the_network(worker, {{"query", "dead-letters show"}, {"id", letters.parts}}) == "none");
  CHECK(run_command({"dead-letters", "purge", letters.parts, "--replies", worker.replies()}).exit == 64);
  CHECK(worker.rows() == Rows{1, 4});
  CHECK(audit(worker).empty());
}

TEST_CASE("what was redriven or purged stays so through kill -9") {
  WorkerProcess worker;
  const Letters letters = fill(worker);
  CHECK(change(worker, "redrive", {letters.parts}).exit == 0);
  CHECK(change(worker, "purge", {letters.not_json}).exit == 0);
  worker.kill_now();
  CHECK(worker.rows() == Rows{2, 2});
  worker.start();
  CHECK(worker.rows() == Rows{2, 2});
  CHECK(change(worker, "purge", {letters.not_json}).exit == 1);
  CHECK(field_of(audit(worker), "action") == "redrive purge");
  worker.kill_now();
  // And on the database itself, where the command is the one that writes.
  CHECK(change(worker, "purge", {letters.failed}).exit == 0);
  CHECK(worker.rows() == Rows{2, 1});
}

TEST_CASE("a worker killed before or after the commit of a change leaves exactly one of dead letter and result") {
  for (const std::string when : {"before", "after"}) {
    CAPTURE(when);
    WorkerProcess worker;
    const Letters letters = fill(worker, {"--kill-at", "worker." + when + "-change:1"});
    const Finished redriven = change(worker, "redrive", {letters.parts});
    CHECK(worker.process().wait().signal == SIGKILL);
    CHECK(worker.rows() == Rows{2, 3}); // by the worker, or by the command once the worker was gone
    const Line line = redriven.line();
    if (when == "before") {
      CHECK(redriven.exit == 0);
      CHECK(line["outcome"] == "stored");
    } else {
      CHECK(redriven.exit == 1);
      CHECK(line["outcome"] == "not_found");
      CHECK(line["detail"].find("the first may have done it") != std::string::npos);
    }
    CHECK(audit(worker).size() == 1);
  }
}

TEST_CASE("all dead letters of a reason are purged page by page and a dry run changes none") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  std::vector<Bytes> jobs{job_bytes("big", {INT64_MAX, 1}),
                          job_bytes({.operation_id = "x", .numbers = {}, .type = "no"})};
  for (int job = 0; job < 250; ++job)
    jobs.push_back("not-json-" + std::to_string(job));
  CHECK(peer.deliver(jobs).size() == 252);

  const Arguments data{"--data", worker.data().string()};
  const Finished dry = run_command(Arguments{"dead-letters", "purge", "--reason", "invalid", "--dry-run"} + data);
  CHECK(dry.exit == 0);
  CHECK(tally(dry.lines(), "id").size() == 251);
  CHECK(tally_text(dry.lines(), "would") == "purge 251");
  CHECK(worker.rows() == Rows{0, 252});

  const Finished typed = change(worker, "purge", {"--reason", "invalid", "--type", "no"});
  CHECK(typed.exit == 0);
  CHECK(typed.lines().size() == 1);
  const Finished purged = change(worker, "purge", {"--reason", "invalid"});
  CHECK(purged.exit == 0);
  CHECK(tally_text(purged.lines(), "outcome") == "purged 250");
  CHECK(worker.rows() == Rows{0, 1});
  const auto left = run_command(Arguments{"dead-letters", "list", "--type", "sum"} + data).lines();
  CHECK(field_of(left, "reason") == "failed");
  CHECK(audit(worker).size() == 251);
  CHECK(run_command(Arguments{"audit", "--after", "100", "--limit", "3"} + data).lines().at(2)["number"] == "103");
}

TEST_CASE("a signal stops a run between two dead letters and the rest stays") {
  WorkerProcess worker;
  const Letters letters = fill(worker);
  Process process({.arguments = Arguments{"dead-letters", "purge", "--reason", "invalid", "--rate", "0.1/s", "--data",
                                          worker.data().string()} +
                                by_kim});
  REQUIRE(process.next_line().has_value()); // the second would follow after ten seconds
  process.signal(SIGINT);
  const Finished stopped = finish(process);
  CHECK(stopped.exit == 75);
  CHECK(stopped.output.empty());
  CHECK(worker.rows() == Rows{1, 3});
}

TEST_CASE("a change that is asked for wrongly is refused before anything is done") {
  WorkerProcess worker;
  const Letters letters = fill(worker);
  const Arguments data{"--data", worker.data().string()};
  const Arguments redrive{"dead-letters", "redrive"};
  CHECK(run_command(redrive + data + Arguments{letters.parts}).exit == 64);
  CHECK(run_command(redrive + data + Arguments{letters.parts, "--by", "kim"}).exit == 64);
  CHECK(run_command(redrive + by_kim + Arguments{letters.parts}).exit == 64);
  CHECK(run_command(redrive + data + by_kim).exit == 64);
  CHECK(run_command(redrive + data + by_kim + Arguments{letters.parts, "--reason", "invalid"}).exit == 64);
  CHECK(run_command(redrive + data + by_kim + Arguments{"--reason", "stored"}).exit == 64);
  CHECK(run_command(redrive + data + by_kim + Arguments{"1234"}).exit == 64);
  CHECK(run_command(redrive + data + by_kim + Arguments{letters.parts, "--rate", "fast"}).exit == 64);
  CHECK(run_command(redrive + data + by_kim + Arguments{letters.parts, "--type", "sum"}).exit == 64);
  CHECK(worker.rows() == Rows{1, 4});
  CHECK(run_command(redrive + data + by_kim + Arguments{std::string(32, '0')}).exit == 1);
  CHECK(audit(worker).empty());

  const ScratchDirectory directory;
  const auto nowhere = directory.path() / "nowhere";
  CHECK(run_command(redrive + by_kim + Arguments{letters.parts, "--data", nowhere.string()}).exit == 66);
  CHECK(!std::filesystem::exists(nowhere));
}

TEST_CASE("at the cap garbage from nobody is dropped and counted and jobs of senders are busy and others are stored") {
  WorkerProcess worker;
  worker.start({"--dead-letters-max", "1"});
  RawPeer peer(worker);
  peer.greet();
  CHECK(peer.deliver_one("poison 1").outcome == Outcome::invalid);
  CHECK(peer.deliver_one("poison 2").outcome == Outcome::busy);
  peer.send("garbage 1");
  peer.send("garbage 2");
  CHECK(eventually([&] { return stats(worker)["dropped"] == "2"; }));
  CHECK(outcomes_of(peer.deliver({"poison 2", job_bytes("demo-1", {1}), "poison 1"})) == "busy stored invalid");
  const Line line = stats(worker);
  CHECK(line["busy"] == "2");
  CHECK(line["invalid"] == "2");
  CHECK(line["stored"] == "1");
  CHECK(line["deliveries"] == "7");
  check_balance(line);
  CHECK(worker.rows() == Rows{1, 1});
  CHECK(change(worker, "purge", {"--reason", "invalid"}).exit == 0);
  CHECK(peer.deliver_one("poison 2").outcome == Outcome::invalid);
}

TEST_CASE("deliveries are the sum of all outcomes and what is unknown or dropped") {
  WorkerProcess worker;
  fill(worker);
  CHECK(finish(*std::make_unique<Process>(
                   Process::Options{.arguments = worker.send({"--copies", "3"}), .input = jobs_as_json("job", 500)}))
            .exit == 0);
  const Line line = stats(worker);
  check_balance(line);
  CHECK(line["conflict"] == "1");
  CHECK(line["failed"] == "1");
  CHECK(line["invalid"] == "2");
  CHECK(line["stored"] == "501");
  CHECK(number_in(line, "duplicate") >= 1000); // more where a reply came late and a job was sent again
  CHECK(line["store_available"] == "true");
  CHECK(line["store_openings"] == "1");
}

TEST_CASE("stats are printed for Prometheus and only by a running worker") {
  WorkerProcess worker;
  fill(worker);
  const Finished printed = run_command({"stats", "--replies", worker.replies(), "--format", "prometheus"});
  CHECK(printed.exit == 0);
  for (const char *text :
       {R"(# HELP onced_stored_total deliveries, and queued jobs at their end, with the outcome stored
# TYPE onced_stored_total counter
onced_stored_total 1
)",
        "# TYPE onced_deliveries_total counter\nonced_deliveries_total 5\n",
        "# TYPE onced_batch_deliveries_max gauge\nonced_batch_deliveries_max ",
        "# TYPE onced_relay_unknown_destinations gauge\nonced_relay_unknown_destinations 0\n",
        "# TYPE onced_store_available gauge\nonced_store_available 1\n"}) {
    CAPTURE(text);
    CHECK(printed.output.find(text) != std::string::npos);
  }
  CHECK(worker.stop() == 0);
  CHECK(run_command({"stats", "--data", worker.data().string()}).exit == 66);
}
