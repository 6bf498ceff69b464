// Where replies go. Does not verify that ZeroMQ takes them there.
#include <string>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "worker/routes.hpp"

namespace onced::testing {
namespace {

using worker::Routes;

SenderId sender_number(std::uint64_t number) {
  SenderId id;
  for (std::size_t at = 0; at < 8; ++at)
    id.bytes[at] = static_cast<std::uint8_t>(number >> (8 * at));
  return id;
}

std::string route_of(const Routes &routes, const SenderId &sender) {
  const Bytes *route = routes.find(sender);
  return route == nullptr ? "none" : *route;
}

TEST_CASE("a sender that has not spoken is not known") {
  Routes routes;
  CHECK(routes.find(sender_number(1)) == nullptr);
  CHECK(routes.size() == 0);
}

TEST_CASE("each sender has the route from which it spoke last") {
  Routes routes;
  routes.learn(sender_number(1), "peer-a");
  routes.learn(sender_number(2), "peer-b");
  CHECK(route_of(routes, sender_number(1)) == "peer-a");
  CHECK(route_of(routes, sender_number(2)) == "peer-b");
  routes.learn(sender_number(1), "peer-c");
  CHECK(route_of(routes, sender_number(1)) == "peer-c");
  CHECK(route_of(routes, sender_number(2)) == "peer-b");
  CHECK(routes.size() == 2);
}

TEST_CASE("a routing id may hold any bytes") {
  Routes routes;
  const Bytes routing_id("\0\x80k", 3);
  routes.learn(sender_number(1), routing_id);
  CHECK(route_of(routes, sender_number(1)) == routing_id);
}

TEST_CASE("beyond the limit the sender that was silent for longest is forgotten") {
  Routes routes;
  for (std::uint64_t number = 0; number < limits::known_senders_max; ++number)
    routes.learn(sender_number(number), "first");
  CHECK(routes.size() == limits::known_senders_max);
  routes.learn(sender_number(0), "second"); // the oldest speaks again
  routes.learn(sender_number(limits::known_senders_max), "new");
  CHECK(routes.size() == limits::known_senders_max);
  CHECK(route_of(routes, sender_number(0)) == "second");
  CHECK(route_of(routes, sender_number(1)) == "none");
  CHECK(route_of(routes, sender_number(2)) == "first");
  CHECK(route_of(routes, sender_number(limits::known_senders_max)) == "new");
}

TEST_CASE("a flood of strangers never makes more routes than the limit") {
  Routes routes;
  for (std::uint64_t number = 0; number < 5 * limits::known_senders_max; ++number)
    routes.learn(sender_number(number), "stranger");
  CHECK(routes.size() == limits::known_senders_max);
  CHECK(route_of(routes, sender_number(5 * limits::known_senders_max - 1)) == "stranger");
  CHECK(route_of(routes, sender_number(4 * limits::known_senders_max)) == "stranger");
  CHECK(route_of(routes, sender_number(4 * limits::known_senders_max - 1)) == "none");
}

} // namespace
} // namespace onced::testing
