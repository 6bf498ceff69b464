// Where replies go. Does not verify that ZeroMQ takes them there (tests/contract/floods_test.cpp).
#include <string>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "worker/routes.hpp"

namespace onced::testing {
namespace {

using worker::PeerConnection;
using worker::Routes;

SenderId sender_number(std::uint64_t number) {
  SenderId id;
  for (std::size_t at = 0; at < 8; ++at)
    id.bytes[at] = static_cast<std::uint8_t>(number >> (8 * at));
  return id;
}

// The connection with this descriptor, opened for the `time`th time.
PeerConnection connection(int descriptor, int time = 1) {
  return {.descriptor = descriptor, .routing_id = std::to_string(descriptor) + "-" + std::to_string(time)};
}

// The routing ids, in the order in which replies are sent to them.
std::string routes_of(const Routes &routes, std::uint64_t sender) {
  std::string all;
  for (const Bytes &routing_id : routes.find(sender_number(sender)))
    all.append(all.empty() ? "" : " ").append(routing_id);
  return all;
}

TEST_CASE("a sender that has not spoken is not known") {
  const Routes routes;
  CHECK(routes_of(routes, 1).empty());
  CHECK(routes.size() == 0);
}

TEST_CASE("each sender is reached over every connection on which it said hello") {
  Routes routes;
  routes.learn(sender_number(1), connection(10));
  routes.learn(sender_number(2), connection(11));
  routes.learn(sender_number(1), connection(12));
  routes.learn(sender_number(1), connection(10));
  CHECK(routes_of(routes, 1) == "10-1 12-1");
  CHECK(routes_of(routes, 2) == "11-1");
  CHECK(routes.size() == 3);
}

TEST_CASE("a routing id may hold any bytes") {
  Routes routes;
  const Bytes routing_id("\0\x80k", 3);
  routes.learn(sender_number(1), {.descriptor = 10, .routing_id = routing_id});
  CHECK(routes.find(sender_number(1)) == std::vector<Bytes>{routing_id});
}

TEST_CASE("strangers that say hello with a sender's id take no route from it and one more takes the newest's place") {
  Routes routes;
  routes.learn(sender_number(1), connection(1));
  for (int stranger = 2; stranger < 100; ++stranger) {
    routes.learn(sender_number(1), connection(stranger));
    routes.learn(sender_number(1), connection(stranger));
  }
  CHECK(routes_of(routes, 1) == "1-1 2-1 3-1 99-1");
  routes.learn(sender_number(1), connection(200)); // a sender that is connected anew has a route at once
  CHECK(routes_of(routes, 1) == "1-1 2-1 3-1 200-1");
  CHECK(routes.size() == limits::routes_a_sender_max);
}

TEST_CASE("a connection takes the place of the one that had its descriptor") {
  Routes routes;
  routes.learn(sender_number(1), connection(10, 1));
  routes.learn(sender_number(2), connection(10, 1));
  routes.learn(sender_number(1), connection(10, 2));
  CHECK(routes_of(routes, 1) == "10-2");
  CHECK(routes_of(routes, 2).empty());
  CHECK(routes.size() == 1);
}

TEST_CASE("over a connection that is closed nobody is reached") {
  Routes routes;
  routes.learn(sender_number(1), connection(10));
  routes.learn(sender_number(1), connection(11));
  routes.learn(sender_number(2), connection(10));
  routes.forget("10-1");
  routes.forget("not known");
  CHECK(routes_of(routes, 1) == "11-1");
  CHECK(routes_of(routes, 2).empty());
  CHECK(routes.size() == 1);
}

TEST_CASE("a stranger with random ids fills its own routes and takes none from others") {
  Routes routes;
  for (std::uint64_t number = 0; number < 100; ++number)
    routes.learn(sender_number(number), connection(static_cast<int>(number)));
  for (std::uint64_t number = 1000; number < 1000 + 5 * limits::known_senders_max; ++number)
    routes.learn(sender_number(number), connection(500));
  CHECK(routes.size() == limits::known_senders_max);
  for (std::uint64_t number = 0; number < 100; ++number)
    CHECK(routes_of(routes, number) == std::to_string(number) + "-1");
  CHECK(routes_of(routes, 1000 + 5 * limits::known_senders_max - 1) == "500-1");
  CHECK(routes_of(routes, 1000).empty());
  routes.learn(sender_number(200), connection(501)); // and there is room for who comes later
  CHECK(routes_of(routes, 200) == "501-1");
}

TEST_CASE("among connections of one sender each the one silent for longest is forgotten") {
  Routes routes;
  for (std::uint64_t number = 0; number < limits::known_senders_max; ++number)
    routes.learn(sender_number(number), connection(static_cast<int>(number)));
  routes.learn(sender_number(0), connection(0)); // the oldest speaks again
  routes.learn(sender_number(limits::known_senders_max), connection(static_cast<int>(limits::known_senders_max)));
  CHECK(routes.size() == limits::known_senders_max);
  CHECK(routes_of(routes, 0) == "0-1");
  CHECK(routes_of(routes, 1).empty());
  CHECK(routes_of(routes, 2) == "2-1");
}

TEST_CASE("every connection is told once") {
  Routes routes;
  routes.learn(sender_number(1), connection(10));
  routes.learn(sender_number(2), connection(10));
  routes.learn(sender_number(1), connection(11));
  CHECK(routes.connections() == std::vector<Bytes>{"10-1", "11-1"});
}

} // namespace
} // namespace onced::testing
