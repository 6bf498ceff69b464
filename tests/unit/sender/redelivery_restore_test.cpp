// Verifies jobs that come to the state machine with a sequence of their own, from an outbox. What follows, sending and
// settling, is that of any job (redelivery_test.cpp).
#include "sender/redelivery.hpp"

#include <doctest/doctest.h>

#include "unit/sender/redelivery_bench.hpp"

namespace onced::testing {
namespace {

using std::chrono::seconds;

struct Scene {
  RedeliveryOptions options;
  SeededRandom random{1};
  MonotonicTime now{seconds{1000}};
};

TEST_CASE("restored jobs keep their sequences and times and begin with attempt 1") {
  Scene scene;
  Redelivery redelivery(scene.options, scene.random);
  const WallTime issued_at{seconds{77}};
  redelivery.restore(Sequence{900}, "b", redelivery::tag(2), issued_at);
  redelivery.restore(Sequence{40}, "a", redelivery::tag(1), issued_at);
  redelivery.on_greeting(redelivery::boot(1), scene.now);
  const auto due = redelivery.due(scene.now, 10, 100);
  REQUIRE(due.size() == 2);
  CHECK(due[0].sequence == Sequence{40}); // the oldest first, whatever the order of their arrival
  CHECK(due[1].sequence == Sequence{900});
  CHECK(due[1].tag == redelivery::tag(2));
  CHECK(due[1].issued_at == issued_at);
  CHECK(due[1].attempt == 1);
  CHECK(due[1].job == "b");
}

TEST_CASE("a restored job takes room until it settles and gives its bytes back with the outcome") {
  Scene scene;
  scene.options.jobs_max = 2;
  scene.options.bytes_max = 10;
  Redelivery redelivery(scene.options, scene.random);
  CHECK(redelivery.room().jobs == 2);
  CHECK(redelivery.room().bytes == 10);
  redelivery.restore(Sequence{5}, "seven b", redelivery::tag(1), {});
  CHECK(redelivery.room().jobs == 1);
  CHECK(redelivery.room().bytes == 3);
  CHECK(!redelivery.has_room(4));

  redelivery.on_greeting(redelivery::boot(1), scene.now);
  redelivery.sent(redelivery.due(scene.now, 10, 100), scene.now);
  const auto reply = redelivery.on_reply(
      {.sequence = Sequence{5}, .tag = redelivery::tag(1), .outcome = Outcome::stored, .result = "r", .detail = {}},
      scene.now);
  REQUIRE(reply.settled.has_value());
  CHECK(reply.settled->job == "seven b");
  CHECK(reply.settled->result == "r");
  CHECK(redelivery.room().jobs == 2);
  CHECK(redelivery.room().bytes == 10);
}

TEST_CASE("a late reply to a job of an earlier process settles nothing before the job is sent again") {
  Scene scene;
  Redelivery redelivery(scene.options, scene.random);
  redelivery.restore(Sequence{5}, "job", redelivery::tag(1), {});
  redelivery.on_greeting(redelivery::boot(1), scene.now);
  const auto reply = redelivery.on_reply(
      {.sequence = Sequence{5}, .tag = redelivery::tag(1), .outcome = Outcome::stored, .result = {}, .detail = {}},
      scene.now);
  CHECK(reply.effect == Redelivery::ReplyEffect::ignored);
  CHECK(redelivery.counters().unsettled == 1);
}

} // namespace
} // namespace onced::testing
