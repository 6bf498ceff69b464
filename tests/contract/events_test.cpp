// The event streams of `serve --events` and `send --events`: each step of a delivery, in its order, and the lab's
// replies that are lost. Does not verify that they join to a true record: that is the rehearsal's.
#include <algorithm>

#include <doctest/doctest.h>

#include "support/file_content.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// The names of the events of a stream, without those of the worker's log, which have no sender.
std::vector<std::string> steps_in(const std::vector<Line> &stream) {
  std::vector<std::string> steps;
  for (const Line &line : stream) {
    const std::string attempt = line["attempt"] == "absent" ? "" : " " + line["attempt"];
    const std::string outcome = line["outcome"] == "absent" ? "" : " " + line["outcome"];
    if (line["sender"] != "absent") steps.push_back(line["event"] + attempt + outcome);
  }
  return steps;
}

using Steps = std::vector<std::string>;

} // namespace

TEST_CASE("the streams tell each step of a delivery whose first reply is lost and of the one after it") {
  const ScratchDirectory temp;
  const std::string worker_stream = temp.path() / "worker";
  const std::string sender_stream = temp.path() / "sender";
  WorkerProcess worker;
  worker.start({"--events", worker_stream, "--workers", "1"});
  const Finished sent =
      run_command(worker.send({"--events", sender_stream, "--lose-first-replies", "--acknowledgement-timeout", "2s"}),
                  "{\"operation_id\":\"a\",\"numbers\":[1,2]}");
  CHECK(sent.exit == 0);
  const auto told = sent.lines();
  REQUIRE(told.size() == 2); // the last one are the figures
  CHECK(told[0]["outcome"] == "duplicate");
  CHECK(told[0]["result"] == "3");
  CHECK(told[1]["lost_replies"] == "1");
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{1, 0});

  const auto by_sender = lines_of(content_of(sender_stream));
  const auto by_worker = lines_of(content_of(worker_stream));
  Steps sender_steps = steps_in(by_sender);
  Steps worker_steps = steps_in(by_worker);
  // A late second attempt may be followed by a third, which settles nothing new.
  REQUIRE(sender_steps.size() >= 5);
  REQUIRE(worker_steps.size() >= 4);
  CHECK(Steps(sender_steps.begin(), sender_steps.begin() + 2) == Steps{"job.kept", "delivery.published 1"});
  CHECK(std::count(sender_steps.begin(), sender_steps.end(), "reply.lost stored") == 1);
  CHECK(std::count(sender_steps.begin(), sender_steps.end(), "delivery.published 2") == 1);
  CHECK(sender_steps.back().starts_with("delivery.acknowledged "));
  CHECK(sender_steps.back().ends_with(" duplicate"));
  worker_steps.resize(4);
  CHECK(worker_steps == Steps{"delivery.consumed 1", "delivery.settled 1 stored", "delivery.consumed 2",
                              "delivery.settled 2 duplicate"});
  // What they are joined by.
  CHECK(by_sender[1]["tag"].size() == 16);
  for (const std::string name : {"sender", "sequence", "tag", "operation_id"}) {
    const auto first_of_worker =
        std::find_if(by_worker.begin(), by_worker.end(), [](const Line &line) { return line["sender"] != "absent"; });
    REQUIRE(first_of_worker != by_worker.end());
    CHECK(by_sender[1][name] == (*first_of_worker)[name]);
  }
}

TEST_CASE("the worker's stream tells its log too and a stream that cannot be written to is refused") {
  const ScratchDirectory temp;
  const std::string stream = temp.path() / "worker";
  WorkerProcess worker;
  worker.start({"--events", stream});
  CHECK(worker.stop() == 0);
  const auto lines = lines_of(content_of(stream));
  CHECK(std::any_of(lines.begin(), lines.end(), [](const Line &line) { return line["sender"] == "absent"; }));
  const std::string nowhere = temp.path() / "no" / "folder";
  CHECK(run_command(worker.serve({"--events", nowhere})).exit == 74);
  CHECK(run_command(worker.send({"--events", nowhere})).exit == 74);
}
