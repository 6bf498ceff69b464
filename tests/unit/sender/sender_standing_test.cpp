// What a sender tells of its jobs while they wait, how its callers wait, and when it does not start or stops at once.
// Does not verify the product's worker.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "onced/sender.hpp"
#include "support/document.hpp"
#include "support/store_harness.hpp"
#include "unit/sender/scenery.hpp"

namespace onced::testing {
namespace {

using std::chrono::seconds;

TEST_CASE("a sender tells what keeps its jobs from settling and of each job whether the worker has it") {
  using Cause = UnsettledCause;
  Scenery scenery;
  scenery.start();
  const Sequence first = scenery.submit(job_bytes("a", {1}));
  const Sequence second = scenery.submit(job_bytes("b", {1}));
  const auto becomes = [&](Cause cause) {
    const MonotonicTime deadline = soon();
    while (scenery.sender->why_unsettled().cause != cause && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return scenery.sender->why_unsettled().cause == cause;
  };
  const auto cause_of = [&](Sequence sequence) { return scenery.sender->why_unsettled(sequence).cause; };
  scenery.worker.hear_new_sender();
  CHECK(becomes(Cause::no_answer)); // it is connected, and nobody has answered its hello
  CHECK(scenery.sender->why_unsettled().endpoint == scenery.worker.replies_endpoint());
  const std::vector<std::pair<wire::WorkerState, Cause>> notices{
      {wire::WorkerState::opening, Cause::worker_opening},
      {wire::WorkerState::full, Cause::worker_full},
      {wire::WorkerState::unavailable, Cause::worker_unavailable},
      {wire::WorkerState::draining, Cause::worker_draining}};
  for (const auto &[state, cause] : notices) {
    scenery.worker.say(wire::encode_notice(state));
    CHECK(becomes(cause));
    CHECK(cause_of(second) == cause);
  }
  CHECK_FALSE(scenery.worker.has_jobs()); // a notice is no greeting
  scenery.worker.greet(boot_number(1));
  const auto jobs = scenery.worker.take(2);
  CHECK(becomes(Cause::no_reply));
  scenery.worker.reply(
      {.sequence = first, .tag = jobs[0].tag, .outcome = Outcome::accepted, .result = {}, .detail = "x"});
  CHECK(becomes(Cause::accepted));
  CHECK(scenery.sender->why_unsettled(first).detail == "x");
  CHECK(cause_of(second) == Cause::no_reply);
  scenery.worker.reply({.sequence = second, .tag = jobs[1].tag, .outcome = Outcome::busy, .result = {}, .detail = "y"});
  scenery.settle(jobs[0], Outcome::stored);
  static_cast<void>(scenery.next());
  CHECK(becomes(Cause::busy));
  CHECK(scenery.sender->why_unsettled(second).detail == "y");
  scenery.worker.say(wire::encode_notice(wire::WorkerState::full));
  CHECK(becomes(Cause::worker_full));
}

TEST_CASE("a job that the worker has is accepted whatever has become of the worker") {
  Scenery scenery;
  scenery.start_and_greet();
  const Sequence job = scenery.submit(job_bytes("a", {1}));
  scenery.settle(scenery.worker.take(1)[0], Outcome::accepted);
  const auto cause_becomes = [&](UnsettledCause cause, const auto &told) {
    const MonotonicTime deadline = soon();
    while (told().cause != cause && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return told().cause == cause;
  };
  CHECK(cause_becomes(UnsettledCause::accepted, [&] { return scenery.sender->why_unsettled(job); }));
  scenery.worker.rebind_replies(); // breaks the connection; nobody greets on the new one
  CHECK(cause_becomes(UnsettledCause::no_answer, [&] { return scenery.sender->why_unsettled(); }));
  CHECK(scenery.sender->why_unsettled(job).cause == UnsettledCause::accepted);
}

TEST_CASE("that a job has expired is believed only where the greeting bears it out") {
  Scenery scenery;
  scenery.start_and_greet();
  scenery.submit(job_bytes("a", {1}));
  const auto job = scenery.worker.take(1)[0];
  scenery.settle(job, Outcome::expired);
  scenery.settle(job, Outcome::stored);
  CHECK(scenery.next().outcome == Outcome::stored);
  CHECK(scenery.sender->stats().ignored_replies == 1);
}

TEST_CASE("the causes that operations.md tells of are those that there are") {
  const auto rows = document_table("operations.md", "causes");
  REQUIRE(rows.size() == static_cast<std::size_t>(UnsettledCause::accepted) + 1);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto cause = static_cast<UnsettledCause>(at);
    CHECK(rows[at][0] == name_of(cause));
    CHECK(describe({.cause = cause, .endpoint = "tcp://a:1", .detail = "why"}).starts_with("tcp://a:1: "));
  }
}

TEST_CASE("submit waits while the sender is full and goes on when something was fetched") {
  Scenery scenery;
  scenery.start_and_greet();
  const Bytes large(limits::job_bytes_max, 'x');
  std::size_t held = 0;
  while (scenery.sender->submit(large, now()))
    ++held;
  CHECK(held == limits::sender_bytes_max / limits::job_bytes_max);
  CHECK(scenery.sender->submit(large, now()).error().code == ErrorCode::timed_out);
  scenery.settle(scenery.worker.take_message()[0], Outcome::stored);
  scenery.next();
  CHECK(scenery.sender->submit(large, soon()));
}

TEST_CASE("next_settled times out when nothing has settled") {
  Scenery scenery;
  scenery.start();
  const auto settled = scenery.sender->next_settled(now());
  REQUIRE_FALSE(settled);
  CHECK(settled.error().code == ErrorCode::timed_out);
}

TEST_CASE("a sender without a window and a sender without an endpoint do not start") {
  Scenery scenery;
  scenery.options.window_jobs = 0;
  CHECK(Sender::start(scenery.options, scenery.clock, scenery.random, scenery.log).error().code == ErrorCode::usage);
  scenery.options.window_jobs = 1;
  scenery.options.jobs_endpoint = "nowhere";
  CHECK(Sender::start(scenery.options, scenery.clock, scenery.random, scenery.log).error().code == ErrorCode::endpoint);
  scenery.options.jobs_endpoint = scenery.worker.jobs_endpoint();
  scenery.options.replies_endpoint = "nowhere";
  CHECK(Sender::start(scenery.options, scenery.clock, scenery.random, scenery.log).error().code == ErrorCode::endpoint);
}

TEST_CASE("a sender that no worker has ever answered stops at once") {
  Scenery scenery;
  scenery.options.jobs_endpoint = "tcp://127.0.0.1:9";
  scenery.options.replies_endpoint = "tcp://127.0.0.1:9";
  scenery.start();
  scenery.submit(job_bytes("a", {1}));
  const auto before = std::chrono::steady_clock::now();
  scenery.sender.reset();
  CHECK(std::chrono::steady_clock::now() - before < patience);
}

} // namespace
} // namespace onced::testing
