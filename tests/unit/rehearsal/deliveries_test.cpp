// How the traces of a scenario are joined into deliveries, and its backlog: what belongs to which attempt, through
// resends, kills, lost replies and a worker that tells nothing. Not that processes leave such traces: that is the
// demo's.
#include "rehearsal/deliveries.hpp"

#include <doctest/doctest.h>

#include "rehearsal/timeline.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::uint64_t job_number = 7;

Told told(const std::string &name, Micros at, Json fields = Json::object()) {
  fields.update({{"sender", "s"}, {"sequence", job_number}, {"tag", "t"}});
  return {.name = name, .at = at, .fields = fields, .line = name + "@" + std::to_string(at)};
}

Told published(Micros at, unsigned attempt) {
  return told("delivery.published", at, {{"attempt", attempt}, {"operation_id", "a"}});
}
Told consumed(Micros at, unsigned attempt) {
  return told("delivery.consumed", at, {{"attempt", attempt}});
}
Told settled(Micros at, unsigned attempt, const std::string &outcome) {
  return told("delivery.settled", at, {{"attempt", attempt}, {"outcome", outcome}});
}
Told acknowledged(Micros at, const std::string &outcome) {
  return told("delivery.acknowledged", at, {{"outcome", outcome}});
}
Told reply_lost(Micros at, const std::string &outcome) {
  return told("reply.lost", at, {{"outcome", outcome}});
}

Mark mark(Micros at) {
  return {.operation_id = "a", .at = time_of(at)};
}

} // namespace

TEST_CASE("a delivery holds every step that was told of it") {
  Traces traces;
  traces.senders = {{published(10, 1), acknowledged(50, "stored")}};
  traces.worker = {consumed(20, 1), settled(40, 1, "stored")};
  traces.commits = {{"a", 30}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 1);
  CHECK(deliveries[0].operation_id == "a");
  CHECK(deliveries[0].published == 10);
  CHECK(deliveries[0].consumed == 20);
  CHECK(deliveries[0].committed == 30);
  CHECK(deliveries[0].settled == 40);
  CHECK(deliveries[0].acknowledged == 50);
  CHECK(deliveries[0].outcome == "stored");
  CHECK(deliveries[0].log == "delivery.settled@40");
  CHECK(deliveries[0].killed.empty());
}

TEST_CASE("an accepted delivery holds the final outcome that a later reply tells and its commit") {
  Traces traces;
  traces.senders = {{published(10, 1), acknowledged(60, "stored")}};
  traces.worker = {consumed(20, 1), settled(30, 1, "accepted")};
  traces.commits = {{"a", 50}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 1);
  CHECK(deliveries[0].outcome == "accepted");
  CHECK(deliveries[0].final_outcome == "stored");
  CHECK(deliveries[0].committed == 50);
  CHECK(deliveries[0].acknowledged == 60);
  CHECK(deliveries[0].log == "delivery.settled@30");
}

TEST_CASE("a final outcome that was asked for is that of the asking delivery and the commit that of the first") {
  Traces traces;
  traces.senders = {{published(10, 1), published(35, 2), published(60, 3), acknowledged(80, "duplicate")}};
  traces.worker = {consumed(20, 1), settled(30, 1, "accepted"), consumed(40, 2), settled(45, 2, "accepted"),
                   consumed(65, 3), settled(70, 3, "duplicate")};
  traces.commits = {{"a", 50}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 3);
  CHECK(deliveries[0].committed == 50);
  CHECK(deliveries[1].committed == 0);
  CHECK(deliveries[0].acknowledged + deliveries[1].acknowledged == 0);
  CHECK(deliveries[0].final_outcome.empty());
  CHECK(deliveries[2].acknowledged == 80);
  CHECK(deliveries[2].outcome == "duplicate");
  CHECK(deliveries[2].final_outcome.empty());
}

TEST_CASE("a row of a worker that told nothing came by the last delivery before it") {
  Traces traces;
  traces.senders = {{published(10, 1), published(30, 2), published(50, 3), acknowledged(60, "duplicate")}};
  traces.commits = {{"a", 40}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 3);
  CHECK(deliveries[0].committed == 0);
  CHECK(deliveries[1].committed == 40);
  CHECK(deliveries[2].committed == 0);
}

TEST_CASE("a message that was handed out again because of a full pipe is one delivery with the last time") {
  Traces traces;
  traces.senders = {{published(10, 1), published(15, 1), published(30, 2)}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].published == 15);
  CHECK(deliveries[1].published == 30);
  CHECK(deliveries[1].attempt == 2);
}

TEST_CASE("a worker speaks of the attempt of the sender that was resumed and not of the one that died") {
  Traces traces;
  traces.senders = {{published(10, 1)}, {published(50, 1), acknowledged(80, "stored")}};
  traces.worker = {consumed(60, 1), settled(70, 1, "stored")};
  traces.kills = {{.began = 5, .ended = 20, .is_worker = false, .point = "sender.after-outbox"}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].killed == "sender.after-outbox");
  CHECK(deliveries[0].consumed == 0);
  CHECK(deliveries[0].acknowledged == 0);
  CHECK(deliveries[1].killed.empty());
  CHECK(deliveries[1].settled == 70);
  CHECK(deliveries[1].acknowledged == 80);
}

TEST_CASE("what a worker said before a sender was resumed is of the attempt before") {
  Traces traces;
  traces.senders = {{published(10, 1)}, {published(50, 1), acknowledged(80, "duplicate")}};
  traces.worker = {consumed(12, 1), settled(15, 1, "stored")}; // of the second attempt nothing was written
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].settled == 15);
  CHECK(deliveries[1].consumed == 0);
  CHECK(deliveries[1].outcome == "duplicate");
}

TEST_CASE("a reply answers a delivery of the process that has heard it") {
  Traces traces;
  traces.senders = {{published(10, 1)}, {published(50, 1), acknowledged(80, "duplicate")}};
  traces.worker = {consumed(12, 1), settled(15, 1, "duplicate")};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].acknowledged == 0);
  CHECK(deliveries[1].acknowledged == 80);
}

TEST_CASE("a reply that was lost tells the outcome of the first attempt and acknowledges nothing") {
  Traces traces;
  traces.senders = {{published(10, 1), reply_lost(30, "stored"), published(40, 2), acknowledged(60, "duplicate")}};
  traces.worker = {consumed(15, 1), settled(20, 1, "stored"), consumed(45, 2), settled(50, 2, "duplicate")};
  traces.commits = {{"a", 18}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].outcome == "stored");
  CHECK(deliveries[0].committed == 18);
  CHECK(deliveries[0].acknowledged == 0);
  CHECK(deliveries[1].outcome == "duplicate");
  CHECK(deliveries[1].committed == 0);
  CHECK(deliveries[1].acknowledged == 60);
}

TEST_CASE(
    "what a worker had committed as it was killed after a commit is its delivery's and so of no kill before one") {
  Traces traces;
  traces.senders = {{published(10, 1), published(50, 2), acknowledged(70, "duplicate")}};
  traces.worker = {consumed(15, 1), consumed(55, 2), settled(60, 2, "duplicate")};
  traces.commits = {{"a", 18}};
  traces.kills = {{.began = 5, .ended = 30, .is_worker = true, .point = "worker.after-commit"}};
  auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].killed == "worker.after-commit");
  CHECK(deliveries[0].committed == 18);
  CHECK(deliveries[1].killed.empty());
  CHECK(deliveries[1].committed == 0);
  traces.kills[0].point = "worker.before-commit";
  deliveries = join_deliveries(traces);
  CHECK(deliveries[0].killed == "worker.before-commit");
  CHECK(deliveries[0].committed == 0);
}

TEST_CASE("of a worker that tells nothing a reply answers the last delivery without an outcome") {
  Traces traces;
  traces.worker_tells = false;
  traces.senders = {{published(10, 1), reply_lost(20, "stored"), published(30, 2), acknowledged(40, "duplicate")}};
  traces.marks = {mark(15)};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].outcome == "stored");
  CHECK(deliveries[0].committed == 15);
  CHECK(deliveries[1].outcome == "duplicate");
  CHECK(deliveries[1].committed == 0);
}

TEST_CASE("two replies to two deliveries answer one each though nobody says which") {
  Traces traces;
  traces.worker_tells = false;
  traces.senders = {{published(10, 1), published(12, 2), reply_lost(30, "stored"), acknowledged(40, "stored")}};
  traces.marks = {mark(15), mark(25)};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].outcome == "stored");
  CHECK(deliveries[1].outcome == "stored");
  CHECK(deliveries[0].committed == 15);
  CHECK(deliveries[1].committed == 25);
}

TEST_CASE("a mark is of the delivery that was in hand at the kill rather than of one that was lost before") {
  Traces traces;
  traces.worker_tells = false;
  traces.senders = {{published(3, 1), published(10, 2)}};
  traces.marks = {mark(20)};
  traces.kills = {{.began = 5, .ended = 30, .is_worker = true, .point = "committed"}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].committed == 0);
  CHECK(deliveries[1].committed == 20);
}

TEST_CASE("a mark of a worker that was killed is an effect of the delivery that it had in hand") {
  Traces traces;
  traces.worker_tells = false;
  traces.senders = {{published(10, 1), published(50, 2), acknowledged(60, "stored")}};
  traces.marks = {mark(20), mark(55)}; // a second effect: it has no guard
  traces.kills = {{.began = 5, .ended = 30, .is_worker = true, .point = "committed"}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].killed == "committed");
  CHECK(deliveries[0].committed == 20);
  CHECK(deliveries[1].committed == 55);
}

TEST_CASE("a redrive is a delivery that was not published") {
  Traces traces;
  traces.redriven = {{.operation_id = "a", .outcome = "stored", .log = "line"}};
  traces.commits = {{"a", 30}};
  const auto deliveries = join_deliveries(traces);
  REQUIRE(deliveries.size() == 1);
  CHECK(deliveries[0].published == 0);
  CHECK(deliveries[0].committed == 30);
  CHECK(deliveries[0].log == "line");
}

TEST_CASE("a backlog rises as a sender takes jobs and falls as they are acknowledged") {
  Traces traces;
  traces.senders = {{told("job.kept", 5), told("job.kept", 6), published(10, 1), acknowledged(50, "stored")}};
  traces.worker = {consumed(20, 1), settled(40, 1, "stored")};
  const auto backlog = backlog_of(traces, join_deliveries(traces));
  REQUIRE(backlog.size() == 5);
  const std::vector<std::size_t> waiting{1, 2, 2, 2, 1};
  const std::vector<std::size_t> in_hand{0, 0, 1, 0, 0};
  for (std::size_t at = 0; at < backlog.size(); ++at) {
    CHECK(backlog[at].waiting == waiting[at]);
    CHECK(backlog[at].in_hand == in_hand[at]);
  }
}

} // namespace onced::rehearsal
