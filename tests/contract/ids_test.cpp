// Ids are opaque bytes: what differs in a byte is another job.
#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("an id has 1 to 255 bytes") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto replies = peer.deliver({job_bytes("", {1}), job_bytes("i", {1}), job_bytes(std::string(255, 'i'), {1}),
                                     job_bytes(std::string(256, 'i'), {1})});
  CHECK(outcomes_of(replies) == "invalid stored stored invalid");
  CHECK(replies[0].detail == "bad_operation_id");
  CHECK(replies[3].detail == "bad_operation_id");
  const Finished got = run_command({"get", std::string(255, 'i'), "--data", worker.data().string()});
  CHECK(got.exit == 0);
  CHECK(got.line()["operation_id"] == std::string(255, 'i'));
  CHECK(worker.rows() == Rows{2, 2});
}

TEST_CASE("the send command refuses ids that are none by the line") {
  WorkerProcess worker;
  worker.start();
  const std::string numbers = R"(","numbers":[1]})";
  const Finished sent = run_command(worker.send(), R"({"operation_id":")" + numbers + "\n" + R"({"operation_id":")" +
                                                       std::string(256, 'x') + numbers + "\n" +
                                                       R"({"operation_id":7,"numbers":[1]})" + "\n");
  CHECK(sent.exit == 1);
  CHECK(field_of(sent.lines(), "line") == "1 2 3");
  CHECK(field_of(sent.lines(), "detail") == "bad_operation_id bad_operation_id bad_operation_id");
  CHECK(worker.rows() == Rows{0, 0});
}

TEST_CASE("ids that differ in Unicode form or case or hold separators are different keys") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const std::vector<std::string> ids{
      std::string("\xC3\x9C") + "bertrag",  // precomposed
      std::string("U\xCC\x88") + "bertrag", // with a combining mark
      "ubertrag",
      "Ubertrag",
      "UBERTRAG",
      "a/b",
      "a:b",
      "a|b",
      "a b",
      "a b ",
      " a b",
      "a\tb",
      "a\nb",
      "a,b",
      "a;b",
      "ab",
      std::string("a\0b", 3),
      std::string("a\0", 2),
      "a",
      std::string(1, '\0'),
      "sum",
      "sum/a",
      "\x7F",
      std::string("\xEF\xBB\xBF") + "a",
      std::string("\xE2\x80\x8B") + "a",
  };
  std::vector<Bytes> jobs;
  for (std::size_t at = 0; at < ids.size(); ++at)
    jobs.push_back(job_bytes(ids[at], {static_cast<std::int64_t>(at)}));
  for (const OwnReply &reply : peer.deliver(jobs))
    CHECK(traits_of(reply.outcome).name == "stored");
  CHECK(worker.rows() == Rows{ids.size(), 0});
  for (std::size_t at = 0; at < ids.size(); ++at) {
    CAPTURE(at);
    if (ids[at].find('\0') != std::string::npos) continue; // no argument of a command can hold it
    const Finished got = run_command({"get", "--data", worker.data().string(), "--", ids[at]});
    CHECK(got.line()["result"] == std::to_string(at));
  }
}

TEST_CASE("an effect key and an operation id of the same bytes never meet") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto keyed = [](std::string_view id, std::string_view effect_key) {
    return job_bytes(JobFields{.operation_id = id, .numbers = {1}, .effect_key = effect_key});
  };
  const auto replies =
      peer.deliver({job_bytes("x", {1}), keyed("x", "x"), keyed("x", "y"), keyed("y", std::string("\x03sum\x01x", 6)),
                    keyed("x", std::string(255, 'e')), keyed("x", std::string(256, 'e')),
                    job_bytes(JobFields{.operation_id = "x", .numbers = {1}, .type = "sum"})});
  CHECK(outcomes_of(replies) == "stored stored stored stored stored invalid duplicate");
  CHECK(worker.rows() == Rows{5, 1});
}
