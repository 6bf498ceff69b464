// `get`, `count` and `dead-letters`, of a running worker and of a directory that nobody holds.
#include <functional>

#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// The id of a sender is for who may enter the directory.
std::string without_sender_id(std::string output) {
  const std::string name = R"("sender_id":")";
  const std::size_t at = output.find(name);
  if (at != std::string::npos) output.erase(at, name.size() + 2 * SenderId::size + 2);
  return output;
}

// Asks the same in every way there is: through the control socket, the replies socket and, after the worker has ended,
// the database itself. Each answer must be the same, but for the id of a sender.
std::string same_answer(WorkerProcess &worker, const Arguments &question, int exit_code) {
  const Arguments by_data{"--data", worker.data().string()};
  worker.start();
  const Finished control = run_command(question + by_data);
  const Finished replies = run_command(question + Arguments{"--replies", worker.replies()});
  CHECK(worker.stop() == 0);
  const Finished database = run_command(question + by_data);
  for (const Finished &answer : {control, replies, database}) {
    CHECK(answer.exit == exit_code);
    CHECK(answer.errors.empty());
    CHECK(without_sender_id(answer.output) == replies.output);
  }
  CHECK(database.output == control.output);
  return control.output;
}

// A stopped worker with a result, a conflict, an invalid and a failed job.
void fill_and_stop(WorkerProcess &worker) {
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(outcomes_of(peer.deliver({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9}), "not-json",
                                  job_bytes("big", {INT64_MAX, 1})})) == "stored conflict invalid failed");
  CHECK(worker.stop() == 0);
}

bool is_time(const std::string &text) {
  return text.size() == 27 && text[10] == 'T' && text.back() == 'Z' && text.substr(0, 2) == "20";
}

} // namespace

TEST_CASE("get prints the row and exits with 1 when there is none") {
  WorkerProcess worker;
  fill_and_stop(worker);
  const Line row = lines_of(same_answer(worker, {"get", "demo-1"}, 0)).front();
  CHECK(row["found"] == "true");
  CHECK(row["operation_id"] == "demo-1");
  CHECK(row["type"] == "sum");
  CHECK(row["effect_key"] == "null");
  CHECK(row["phase"] == "committed");
  CHECK(row["result"] == "6");
  CHECK(row["digest"].size() == 64);
  CHECK(is_time(row["committed_at"]));
  CHECK(row["issued_at"] == "2023-11-14T22:13:20.000000Z");
  CHECK(row["durability"] == "fsync");
  CHECK(same_answer(worker, {"get", "demo-2"}, 1) == "{\"operation_id\":\"demo-2\",\"found\":false}\n");
  CHECK(same_answer(worker, {"get", "demo-1", "--type", "other"}, 1) ==
        "{\"operation_id\":\"demo-1\",\"found\":false}\n");
  CHECK(same_answer(worker, {"get", "demo-1", "--effect-key"}, 1) == "{\"effect_key\":\"demo-1\",\"found\":false}\n");
}

TEST_CASE("count prints the rows that there are") {
  WorkerProcess worker;
  fill_and_stop(worker);
  CHECK(same_answer(worker, {"count"}, 0) == "{\"results\":1,\"dead_letters\":3,\"pending\":0,\"relayed\":0}\n");
}

TEST_CASE("dead letters are listed with their reasons and shown with both digests and their bytes") {
  WorkerProcess worker;
  fill_and_stop(worker);
  const auto rows = lines_of(same_answer(worker, {"dead-letters", "list"}, 0));
  CHECK(tally_text(rows, "reason") == "conflict 1, failed 1, invalid 1");
  std::string conflict;
  for (const Line &row : rows) {
    CHECK(row["id"].size() == 32);
    if (row["reason"] == "conflict") conflict = row["id"];
  }
  const auto only = lines_of(same_answer(worker, {"dead-letters", "list", "--reason", "conflict"}, 0));
  CHECK(field_of(only, "id") == conflict);
  CHECK(lines_of(same_answer(worker, {"dead-letters", "list", "--limit", "2"}, 0)).size() == 2);

  const Line letter = lines_of(same_answer(worker, {"dead-letters", "show", conflict}, 0)).front();
  CHECK(letter["bytes"] == to_hex(job_bytes("demo-1", {9})));
  CHECK(letter["stored_digest"].size() == 64);
  CHECK(letter["offered_digest"].size() == 64);
  CHECK(letter["stored_digest"] != letter["offered_digest"]);
  CHECK(letter["sequence"] == "2");
  CHECK(letter["sender"] == handle_of(sender_id(0x11)));
  CHECK(letter["sender_id"] == to_hex(sender_id(0x11).view()));
  CHECK(is_time(letter["first_at"]));
  const std::string absent(32, '0');
  CHECK(same_answer(worker, {"dead-letters", "show", absent}, 1) == "{\"id\":\"" + absent + "\",\"found\":false}\n");
}

TEST_CASE("more dead letters than one answer holds are all listed") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  std::vector<Bytes> jobs;
  for (int job = 0; job < 250; ++job)
    jobs.push_back("not-json-" + std::to_string(job));
  for (const OwnReply &reply : peer.deliver(jobs))
    CHECK(reply.outcome == Outcome::invalid);
  const Finished listed = run_command({"dead-letters", "list", "--data", worker.data().string()});
  CHECK(listed.exit == 0);
  CHECK(tally(listed.lines(), "id").size() == 250);
  CHECK(worker.rows() == Rows{0, 250});
}

TEST_CASE("a dead letter as large as a message is shown whole") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const Bytes large(limits::job_bytes_max, '\xC1');
  CHECK(peer.deliver_one(large).outcome == Outcome::invalid);
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  CHECK(letters.front()["bytes"] == to_hex(large));
}

TEST_CASE("queries are answered while jobs are committed") {
  WorkerProcess worker;
  worker.start();
  Process sender({.arguments = worker.send(), .input = jobs_as_json("job", 20'000)});
  REQUIRE(sender.next_line().has_value());
  std::uint64_t last = 0;
  for (int question = 0; question < 5; ++question) {
    const std::uint64_t results = worker.rows().results;
    CHECK(results >= last);
    last = results;
  }
  CHECK(last > 0);
  CHECK(finish(sender).exit == 0);
  CHECK(worker.rows() == Rows{20'000, 0});
}

TEST_CASE("a query that nobody answers is exit code 75 at its deadline") {
  const WorkerProcess nobody;
  CHECK(run_command({"count", "--replies", nobody.replies(), "--deadline", "200ms"}).exit == 75);
}

TEST_CASE("a worker that hangs lets a query end at its deadline") {
  WorkerProcess worker;
  worker.start();
  worker.process().signal(SIGSTOP);
  CHECK(run_command({"count", "--data", worker.data().string(), "--deadline", "200ms"}).exit == 75);
  CHECK(run_command({"count", "--replies", worker.replies(), "--deadline", "200ms"}).exit == 75);
  worker.process().signal(SIGCONT);
  CHECK(worker.rows() == Rows{0, 0});
}
