#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "onced/bytes.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

// Queries that wait for each other: each lane has a thread of its own. Whoever may enter the data directory does not
// wait for strangers, and who reads one row does not wait for who has everything counted.
enum class QueryLane : std::uint8_t { reads, scans, operator_reads, operator_scans, changes };
inline constexpr std::size_t query_lanes = 5;

// The lane of a query of this name. What may not come by the network has a lane too: it is refused there.
[[nodiscard]] QueryLane lane_of(std::string_view name, bool control);

struct Query {
  PeerAddress peer;
  Bytes request;
  QueryLane lane = QueryLane::reads;
};

// The queries that wait, by connection: those of one connection are answered one after another, in their order, and the
// connections take turns. Bounded for each connection, and for all (limits.hpp). One thread at a time.
class QueryTurns {
public:
  // Lets a query wait. Returns the one that must be refused for it: this one where its connection has as many waiting
  // as it may have, or where all places are taken and no connection has more waiting than it; else the newest of the
  // connection that has most waiting; nothing where there is room.
  [[nodiscard]] std::optional<Query> put(Query query);

  // The next query of the lane, of a connection of which no query is running; this one is, until `done`.
  [[nodiscard]] std::optional<Query> take(QueryLane lane);
  void done(const PeerAddress &peer);

private:
  struct Connection {
    std::deque<Query> waiting;
    bool running = false;
    bool control = false;
  };
  using Connections = std::list<Connection>; // whose turn is next is first
  using Name = std::pair<bool, Bytes>;

  static Name name_of(const PeerAddress &peer) { return {peer.control, peer.routing_id}; }
  [[nodiscard]] Connections::iterator with_most_waiting(bool control);

  Connections connections_;
  std::map<Name, Connections::iterator> by_name_;
  std::size_t network_waiting_ = 0;
  std::size_t control_waiting_ = 0;
};

} // namespace onced::worker
