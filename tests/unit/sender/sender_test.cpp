// The sender on real sockets, against a worker that is played by the test. Its state machine has tests of its own
// (redelivery_test.cpp); here it is what a worker and a caller see of it. Does not verify the product's worker.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "onced/sender.hpp"
#include "support/store_harness.hpp"
#include "unit/sender/scenery.hpp"

namespace onced::testing {
namespace {

using std::chrono::seconds;

TEST_CASE("a sender sends no job before the worker has greeted it") {
  Scenery scenery;
  scenery.start();
  scenery.submit(job_bytes("demo-1", {1}));
  scenery.worker.hear_hello();
  // It greets again while no answer has come; had it wanted to send jobs, it would have done so in between.
  for (int again = 0; again < 2; ++again) {
    scenery.clock.pass(seconds(1));
    scenery.worker.hear_hello();
  }
  CHECK_FALSE(scenery.worker.has_jobs());
  scenery.worker.greet(boot_number(1));
  CHECK(scenery.worker.take(1)[0].sequence == Sequence{1});
}

TEST_CASE("a job arrives with its sequence and tag and attempt and issue time") {
  Scenery scenery;
  scenery.start();
  CHECK(scenery.worker.hear_hello() == scenery.sender->id());
  scenery.worker.greet(boot_number(1));
  const Bytes job = job_bytes("demo-1", {1, 2, 3});
  CHECK(scenery.submit(job) == Sequence{1});
  const auto arrived = scenery.worker.take(1)[0];
  CHECK(arrived.sender == scenery.sender->id());
  CHECK(arrived.sequence == Sequence{1});
  CHECK(arrived.tag == Digester().tag(job));
  CHECK(arrived.attempt == 1);
  CHECK(arrived.issued_at == scenery.clock.wall());
  CHECK(arrived.job == job);
}

TEST_CASE("a sender keeps the id that it was given and makes up another for each that was given none") {
  Scenery scenery;
  scenery.options.sender_id = SenderId{};
  scenery.options.sender_id->bytes.fill(0x42);
  scenery.start();
  CHECK(scenery.sender->id() == *scenery.options.sender_id);
  CHECK(scenery.worker.hear_hello() == *scenery.options.sender_id);

  Scenery other;
  other.start();
  const SenderId first = other.sender->id();
  other.start();
  CHECK(other.sender->id() != first);
}

TEST_CASE("a final reply settles a job with everything that it says") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("demo-1", {1, 2, 3}));
  const auto job = scenery.worker.take(1)[0];
  CHECK(scenery.sender->unsettled() == 1);
  const Bytes six = integer_result(6);
  scenery.worker.reply(
      {.sequence = job.sequence, .tag = job.tag, .outcome = Outcome::duplicate, .result = six, .detail = "as before"},
      Durability::page_cache);
  const Settled settled = scenery.next();
  CHECK(settled.sequence == job.sequence);
  CHECK(settled.outcome == Outcome::duplicate);
  CHECK(settled.result == six);
  CHECK(settled.detail == "as before");
  CHECK(settled.attempts == 1);
  CHECK(settled.durability == Durability::page_cache);
  CHECK(scenery.sender->unsettled() == 0);
}

TEST_CASE("a greeting with a new boot id makes the sender send everything unsettled again at once") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  const auto first = scenery.worker.take(1)[0];
  scenery.submit(job_bytes("b", {2}));
  const auto second = scenery.worker.take(1)[0];
  scenery.settle(first, Outcome::stored);
  CHECK(scenery.next().sequence == first.sequence);

  scenery.worker.greet(boot_number(2));
  const auto again = scenery.worker.take(1)[0];
  CHECK(again.sequence == second.sequence);
  CHECK(again.tag == second.tag);
  CHECK(again.job == second.job);
  CHECK(again.issued_at == second.issued_at);
  CHECK(again.attempt == 2);
}

TEST_CASE("a greeting with the boot id that is known sends nothing again") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.worker.take(1);
  scenery.worker.greet(boot_number(1));
  scenery.submit(job_bytes("b", {2}));
  CHECK(scenery.worker.take(1)[0].sequence == Sequence{2}); // and not 1 before it
}

TEST_CASE("a job whose acknowledgement is late is sent again with the attempt counted") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  const auto first = scenery.worker.take(1)[0];
  scenery.clock.pass(scenery.options.acknowledgement_timeout);
  scenery.submit(job_bytes("b", {2})); // which wakes the sender: it sleeps by the real clock
  const auto later = scenery.worker.take(2);
  CHECK(later[0].sequence == first.sequence);
  CHECK(later[0].attempt == 2);
  CHECK(later[0].tag == first.tag);
  CHECK(later[0].job == first.job);
  CHECK(later[1].sequence == Sequence{2});
  CHECK(later[1].attempt == 1);
  scenery.settle(later[0], Outcome::duplicate);
  CHECK(scenery.next().attempts == 2);
}

TEST_CASE("a reply with a forged tag or a sequence that was never used settles nothing") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  const auto job = scenery.worker.take(1)[0];
  auto forged = job;
  forged.tag.bytes[7] ^= 1U;
  scenery.settle(forged, Outcome::stored);
  auto unknown = job;
  unknown.sequence = Sequence{99};
  scenery.settle(unknown, Outcome::stored);
  scenery.settle(job, Outcome::conflict);
  const Settled settled = scenery.next();
  CHECK(settled.sequence == job.sequence);
  CHECK(settled.outcome == Outcome::conflict);
  CHECK(scenery.sender->unsettled() == 0);
  CHECK(scenery.sender->next_settled(now()).error().code == ErrorCode::timed_out);
}

TEST_CASE("a second final reply to a job is ignored") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.submit(job_bytes("b", {2}));
  const auto jobs = scenery.worker.take(2);
  scenery.settle(jobs[0], Outcome::stored);
  scenery.settle(jobs[0], Outcome::duplicate);
  scenery.settle(jobs[1], Outcome::stored);
  CHECK(scenery.next().sequence == jobs[0].sequence);
  CHECK(scenery.next().sequence == jobs[1].sequence);
}

TEST_CASE("a worker that speaks no version of ours stops submit and next_settled with an error") {
  Scenery scenery;
  scenery.start();
  scenery.submit(job_bytes("a", {1}));
  scenery.worker.hear_hello();
  scenery.worker.say(wire::encode_unsupported());
  const auto settled = scenery.sender->next_settled(soon());
  REQUIRE_FALSE(settled);
  CHECK(settled.error().code == ErrorCode::unsupported_protocol);
  CHECK(settled.error().concerns == scenery.worker.replies_endpoint());
  const auto submitted = scenery.sender->submit(job_bytes("b", {1}), soon());
  REQUIRE_FALSE(submitted);
  CHECK(submitted.error().code == ErrorCode::unsupported_protocol);
  CHECK(scenery.sender->unsettled() == 1);
  CHECK_FALSE(scenery.worker.has_jobs());
}

TEST_CASE("what settled before a worker refused the version can still be fetched") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.submit(job_bytes("b", {1}));
  const auto jobs = scenery.worker.take(2);
  scenery.settle(jobs[0], Outcome::stored);
  scenery.worker.say(wire::encode_unsupported());
  CHECK(scenery.next().sequence == jobs[0].sequence);
  CHECK(scenery.sender->next_settled(soon()).error().code == ErrorCode::unsupported_protocol);
}

TEST_CASE("no more jobs than the window holds are in flight") {
  constexpr std::size_t window = 3;
  constexpr std::size_t jobs = 20;
  Scenery scenery;
  scenery.options.window_jobs = window;
  scenery.start();
  for (std::size_t at = 0; at < jobs; ++at)
    scenery.submit(job_bytes("job-" + std::to_string(at), {1}));
  scenery.worker.hear_hello();
  scenery.worker.greet(boot_number(1));
  auto in_flight = scenery.worker.take(window);
  for (std::size_t settled = 0; settled < jobs; ++settled) {
    CHECK_FALSE(scenery.worker.has_jobs());
    const auto job = in_flight.at(0);
    in_flight.erase(in_flight.begin());
    CHECK(job.sequence == Sequence{settled + 1});
    CHECK(job.attempt == 1);
    scenery.settle(job, Outcome::stored);
    CHECK(scenery.next().sequence == job.sequence);
    if (settled + window < jobs) in_flight.push_back(scenery.worker.take(1).at(0));
  }
  CHECK(scenery.sender->unsettled() == 0);
}

TEST_CASE("a job over the limit is settled as invalid by the sender itself") {
  Scenery scenery;
  scenery.start_and_greet();
  const Sequence oversized = scenery.submit(Bytes(limits::job_bytes_max + 1, 'x'));
  const Settled settled = scenery.next();
  CHECK(settled.sequence == oversized);
  CHECK(settled.outcome == Outcome::invalid);
  CHECK(settled.detail == "too_large");
  CHECK(settled.attempts == 0);
  const Sequence next = scenery.submit(job_bytes("a", {1}));
  CHECK(number_of(next) == number_of(oversized) + 1);
  CHECK(scenery.worker.take(1)[0].sequence == next); // the oversized one never went out
}

TEST_CASE("a job of the largest size goes out in a message of its own") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("small", {1}));
  scenery.submit(Bytes(limits::job_bytes_max, 'x'));
  scenery.submit(job_bytes("small too", {1}));
  const auto jobs = scenery.worker.take(3);
  CHECK(jobs[1].job.size() == limits::job_bytes_max);
}

TEST_CASE("accepted and busy jobs wait outside the window and are settled by a later reply") {
  for (const Outcome waiting : {Outcome::accepted, Outcome::busy}) {
    CAPTURE(waiting);
    Scenery scenery;
    scenery.options.window_jobs = 1;
    scenery.start_and_greet();
    scenery.submit(job_bytes("a", {1}));
    scenery.submit(job_bytes("b", {2}));
    const auto first = scenery.worker.take(1)[0];
    scenery.settle(first, waiting);
    const auto second = scenery.worker.take(1)[0];
    CHECK(second.sequence == Sequence{2});
    CHECK(scenery.sender->unsettled() == 2);
    scenery.settle(second, Outcome::stored);
    CHECK(scenery.next().sequence == second.sequence);
    scenery.settle(first, Outcome::stored);
    CHECK(scenery.next().sequence == first.sequence);
  }
}

TEST_CASE("an accepted job is asked for again after its time") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.settle(scenery.worker.take(1)[0], Outcome::accepted);
  scenery.submit(job_bytes("b", {2}));
  const auto second = scenery.worker.take(1)[0]; // sent after the reply was seen, or with it
  scenery.settle(second, Outcome::stored);
  CHECK(scenery.next().sequence == second.sequence); // replies keep their order: `accepted` has been applied
  scenery.clock.pass(limits::accepted_ask_again);
  scenery.submit(job_bytes("c", {3}));
  const auto again = scenery.worker.take(2);
  CHECK(again[0].sequence == Sequence{1});
  CHECK(again[0].attempt == 2);
  CHECK(again[1].sequence == Sequence{3});
}

TEST_CASE("a sender greets again when it is connected again") {
  Scenery scenery;
  scenery.start_and_greet();
  const SenderId id = scenery.sender->id();
  // The clock stands still, so only the new connection can be the reason.
  for (int round = 0; round < 2; ++round) {
    scenery.worker.rebind_replies();
    CHECK(scenery.worker.hear_hello() == id);
    scenery.worker.greet(boot_number(1));
  }
  scenery.submit(job_bytes("a", {1}));
  scenery.settle(scenery.worker.take(1)[0], Outcome::stored);
  CHECK(scenery.next().outcome == Outcome::stored);
}

TEST_CASE("a sender greets again every five seconds and not before") {
  Scenery scenery;
  scenery.options.acknowledgement_timeout = std::chrono::hours(1); // so that nothing is sent again
  scenery.options.acknowledgement_timeout_max = std::chrono::hours(1);
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.worker.take(1); // so the greeting has been heard
  scenery.worker.forget_hellos();
  for (int round = 0; round < 3; ++round) {
    scenery.clock.pass(seconds(4));
    scenery.submit(job_bytes("b", {1})); // which wakes the sender: it sleeps by the real clock
    scenery.worker.take(1);
    CHECK_FALSE(scenery.worker.has_hello());
    scenery.clock.pass(seconds(1));
    scenery.submit(job_bytes("c", {1}));
    scenery.worker.take(1);
    CHECK(scenery.worker.hear_hello() == scenery.sender->id());
  }
}

TEST_CASE("a sender greets again before it sends a job again") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  scenery.worker.take(1);
  scenery.worker.forget_hellos();
  scenery.clock.pass(scenery.options.acknowledgement_timeout); // less than the time between greetings
  scenery.submit(job_bytes("b", {2}));
  CHECK(scenery.worker.take(2)[0].attempt == 2);
  CHECK(scenery.worker.hear_hello() == scenery.sender->id());
}

TEST_CASE("a sender keeps to the limits of a worker that takes fewer jobs a message") {
  Scenery scenery;
  scenery.start();
  for (int job = 0; job < 5; ++job)
    scenery.submit(job_bytes("job-" + std::to_string(job), {1}));
  scenery.worker.hear_hello();
  Bytes greeting;
  messagepack::Writer writer(greeting);
  writer.array(6).positive(1).string("greeting").binary(boot_number(1).view()).string("fsync").array(1).positive(1);
  writer.map(2).string("deliveries_per_message_max").positive(2).string("message_bytes_max").positive(100'000);
  scenery.worker.say(greeting);
  CHECK(scenery.worker.take_message().size() == 2);
  CHECK(scenery.worker.take_message().size() == 2);
  CHECK(scenery.worker.take_message().size() == 1);
}

TEST_CASE("messages of a worker that make no sense change nothing") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  const auto job = scenery.worker.take(1)[0];
  wire::RepliesEncoder encoder(boot_number(1), Durability::fsync);
  encoder.add({.sequence = job.sequence, .tag = job.tag, .outcome = Outcome::stored, .result = {}, .detail = {}});
  const Bytes good = encoder.take().at(0);
  scenery.worker.say("not-messagepack");
  scenery.worker.say("");
  scenery.worker.say(good.substr(0, good.size() - 1));
  scenery.worker.say(wire::encode_answer("to a question that nobody asked"));
  scenery.worker.say_in_two_parts(good);
  scenery.settle(job, Outcome::failed);
  CHECK(scenery.next().outcome == Outcome::failed);
}

} // namespace
} // namespace onced::testing
