// What the worker's lab does to replies, on a clock that a test moves.
#include <doctest/doctest.h>

#include "support/store_harness.hpp"
#include "worker/reply_lab.hpp"

using namespace onced;
using namespace onced::testing;
using namespace onced::worker;

namespace {

using Batches = std::vector<std::vector<OutgoingFrame>>;

Batches reply_frames(std::size_t count) {
  Batches batches;
  for (std::size_t frame = 0; frame < count; ++frame)
    batches.push_back({{SenderId{}, std::to_string(frame)}});
  return batches;
}

std::vector<Bytes> bytes_of(const Batches &batches) {
  std::vector<Bytes> bytes;
  for (const auto &frames : batches) {
    for (const OutgoingFrame &frame : frames)
      bytes.push_back(frame.frame);
  }
  return bytes;
}

} // namespace

TEST_CASE("a lab without knobs is none") {
  ManualClock clock;
  Counters counters;
  CHECK(ReplyLab::of({}, clock, counters) == nullptr);
}

TEST_CASE("a share of the reply frames is dropped and counted and a seed drops the same ones again") {
  ManualClock clock;
  std::vector<std::vector<Bytes>> runs;
  for (const std::uint64_t seed : {5U, 5U, 6U}) {
    Counters counters;
    const auto lab = ReplyLab::of({.drop_share = 0.3, .seed = seed}, clock, counters);
    REQUIRE(lab != nullptr);
    const auto left = bytes_of(lab->disturb(reply_frames(1000), false));
    CHECK(left.size() + counters.reply_frames_dropped == 1000);
    CHECK(left.size() > 600); // 700 expected, and the seeds are fixed
    CHECK(left.size() < 800);
    runs.push_back(left);
  }
  CHECK(runs[0] == runs[1]);
  CHECK(runs[0] != runs[2]);
}

TEST_CASE("answers to queries are never dropped") {
  ManualClock clock;
  Counters counters;
  const auto lab = ReplyLab::of({.drop_share = 1}, clock, counters);
  Batches batches = reply_frames(3);
  batches.push_back({{PeerAddress{.control = false, .routing_id = "peer"}, "answer"}});
  CHECK(bytes_of(lab->disturb(std::move(batches), false)) == std::vector<Bytes>{"answer"});
}

TEST_CASE("frames are held back as long as they were told to be and all go at the end") {
  using std::chrono::milliseconds;
  ManualClock clock;
  Counters counters;
  const auto lab = ReplyLab::of({.delay = milliseconds(10)}, clock, counters);
  CHECK(lab->wait() == milliseconds(-1));
  CHECK(bytes_of(lab->disturb(reply_frames(1), false)).empty());
  CHECK(lab->wait() == milliseconds(10));
  clock.now += milliseconds(9);
  CHECK(bytes_of(lab->disturb({}, false)).empty());
  CHECK(lab->wait() == milliseconds(1));
  clock.now += milliseconds(1);
  CHECK(bytes_of(lab->disturb({}, false)).size() == 1);
  CHECK(bytes_of(lab->disturb(reply_frames(2), true)).size() == 2);
  CHECK(lab->wait() == milliseconds(-1));
}
