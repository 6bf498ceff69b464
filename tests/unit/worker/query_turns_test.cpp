// Whose query is next, and whose is refused.
#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "worker/query_turns.hpp"

using namespace onced;
using namespace onced::worker;

namespace {

Query query_of(const std::string &peer, QueryLane lane = QueryLane::reads, bool control = false) {
  return {.peer = {.control = control, .routing_id = peer}, .request = {}, .lane = lane};
}

// The peer of the next query of a lane; "-": there is none.
std::string next(QueryTurns &turns, QueryLane lane = QueryLane::reads) {
  const auto query = turns.take(lane);
  return query ? query->peer.routing_id : "-";
}

} // namespace

TEST_CASE("connections take turns however many queries one of them has waiting") {
  QueryTurns turns;
  for (int asked = 0; asked < 3; ++asked)
    CHECK_FALSE(turns.put(query_of("a")));
  CHECK_FALSE(turns.put(query_of("b")));
  CHECK_FALSE(turns.put(query_of("c")));
  std::string order;
  for (int taken = 0; taken < 5; ++taken) {
    const std::string peer = next(turns);
    order += peer;
    turns.done({.control = false, .routing_id = peer});
  }
  CHECK(order == "abcaa");
  CHECK(next(turns) == "-");
}

TEST_CASE("of one connection one query is answered at a time and four wait") {
  QueryTurns turns;
  CHECK_FALSE(turns.put(query_of("a", QueryLane::scans)));
  CHECK(next(turns, QueryLane::scans) == "a");
  for (std::size_t asked = 0; asked < limits::queries_a_connection_waiting_max; ++asked)
    CHECK_FALSE(turns.put(query_of("a")));
  const auto refused = turns.put(query_of("a"));
  REQUIRE(refused.has_value());
  CHECK(refused->peer.routing_id == "a");
  CHECK(next(turns) == "-");
  turns.done({.control = false, .routing_id = "a"});
  CHECK(next(turns) == "a");
  CHECK(next(turns) == "-");
}

TEST_CASE("a lane gives its own queries alone") {
  QueryTurns turns;
  CHECK_FALSE(turns.put(query_of("a", QueryLane::scans)));
  CHECK_FALSE(turns.put(query_of("b", QueryLane::reads)));
  CHECK_FALSE(turns.put(query_of("b", QueryLane::operator_reads, true))); // another connection
  CHECK(next(turns, QueryLane::reads) == "b");
  CHECK(next(turns, QueryLane::reads) == "-");
  CHECK(next(turns, QueryLane::operator_reads) == "b");
  CHECK(next(turns, QueryLane::scans) == "a");
}

TEST_CASE("where all places are taken the connection with most of them loses its newest") {
  QueryTurns turns;
  const std::size_t full_ones = limits::network_queries_waiting_max / limits::queries_a_connection_waiting_max;
  for (std::size_t peer = 0; peer < full_ones; ++peer) {
    for (std::size_t asked = 0; asked < limits::queries_a_connection_waiting_max; ++asked)
      REQUIRE_FALSE(turns.put(query_of("flood-" + std::to_string(peer))));
  }
  const auto refused = turns.put(query_of("late"));
  REQUIRE(refused.has_value());
  CHECK(refused->peer.routing_id.starts_with("flood-"));
  CHECK_FALSE(turns.put(query_of("operator", QueryLane::operator_reads, true)));
  CHECK(next(turns, QueryLane::operator_reads) == "operator");
  std::size_t waiting = 0;
  bool late = false;
  for (std::string peer = next(turns); peer != "-"; peer = next(turns)) {
    late = late || peer == "late";
    ++waiting;
    turns.done({.control = false, .routing_id = peer});
  }
  CHECK(late);
  CHECK(waiting == limits::network_queries_waiting_max);
}

TEST_CASE("where all have one waiting the newcomer is refused") {
  QueryTurns turns;
  for (std::size_t peer = 0; peer < limits::network_queries_waiting_max; ++peer)
    REQUIRE_FALSE(turns.put(query_of(std::to_string(peer))));
  const auto refused = turns.put(query_of("late"));
  REQUIRE(refused.has_value());
  CHECK(refused->peer.routing_id == "late");
}

TEST_CASE("each query has a lane of its own kind") {
  CHECK(lane_of("get", false) == QueryLane::reads);
  CHECK(lane_of("stats", false) == QueryLane::reads);
  CHECK(lane_of("count", false) == QueryLane::scans);
  CHECK(lane_of("dead-letters list", false) == QueryLane::scans);
  CHECK(lane_of("dead-letters purge", false) == QueryLane::reads); // where it is refused
  CHECK(lane_of("get", true) == QueryLane::operator_reads);
  CHECK(lane_of("verify", true) == QueryLane::operator_scans);
  CHECK(lane_of("dead-letters purge", true) == QueryLane::changes);
  CHECK(lane_of("", true) == QueryLane::operator_reads);
}
