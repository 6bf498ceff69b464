// Frames on their way to the gateway, and their bound.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "worker/outgoing.hpp"

namespace onced::testing {
namespace {

using worker::Outgoing;
using worker::OutgoingFrame;
using worker::PeerAddress;

std::vector<OutgoingFrame> frames(std::vector<Bytes> texts) {
  std::vector<OutgoingFrame> made;
  for (Bytes &text : texts)
    made.push_back({SenderId{}, std::move(text)});
  return made;
}

TEST_CASE("frames come out as they were put in and each put rings the gateway") {
  int rung = 0;
  Outgoing outgoing([&] { ++rung; });
  CHECK(outgoing.take().empty());
  SenderId sender;
  sender.bytes.fill(7);
  CHECK(outgoing.put({{sender, "first"}, {PeerAddress{.control = true, .routing_id = "peer"}, "second"}}) == 0);
  CHECK(outgoing.put(frames({"third"})) == 0);
  CHECK(rung == 2);

  const auto taken = outgoing.take();
  REQUIRE(taken.size() == 2);
  REQUIRE(taken[0].size() == 2);
  CHECK(std::get<SenderId>(taken[0][0].to) == sender);
  CHECK(taken[0][0].frame == "first");
  CHECK(std::get<PeerAddress>(taken[0][1].to).control);
  CHECK(std::get<PeerAddress>(taken[0][1].to).routing_id == "peer");
  CHECK(taken[0][1].frame == "second");
  CHECK(taken[1].at(0).frame == "third");
  CHECK(outgoing.take().empty());
}

TEST_CASE("of a put the frames that do not fit are dropped until the gateway has taken the rest") {
  int rung = 0;
  Outgoing outgoing([&] { ++rung; });
  const Bytes half(limits::outgoing_bytes_max / 2, 'x');
  REQUIRE(outgoing.put(frames({half})) == 0);
  CHECK(outgoing.put(frames({half, "y", ""})) == 1);
  CHECK(outgoing.put(frames({"y"})) == 1);
  CHECK(rung == 2); // nothing of the last put is waiting
  const auto full = outgoing.take();
  REQUIRE(full.size() == 2);
  CHECK(full[1].size() == 2);
  CHECK(outgoing.put(frames({"y"})) == 0);
  const auto taken = outgoing.take();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].at(0).frame == "y");
}

} // namespace
} // namespace onced::testing
