#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"

namespace onced::worker {

// A connection to the replies socket.
struct PeerConnection {
  int descriptor = -1; // a later connection may have the same one; -1: not known
  Bytes routing_id;    // of the ROUTER; no two connections that are open have the same one
};

// Over which connections each sender is reached, as its hellos told. Anyone may say hello with any id, so no hello
// takes another connection's routes away: a sender has up to limits::routes_a_sender_max routes, and its replies go to
// each of them; one more takes the place of the newest. In all there are limits::known_senders_max routes; beyond it
// the connection with most of them loses the one that was silent for longest. One thread.
class Routes {
public:
  // This sender said hello over this connection. An earlier connection with the same descriptor is closed.
  void learn(const SenderId &sender, const PeerConnection &connection);

  // The connection is closed: no sender is reached over it.
  void forget(BytesView routing_id);

  // The routing ids of the connections that lead to the sender; empty: it is not known.
  [[nodiscard]] std::vector<Bytes> find(const SenderId &sender) const;

  // The routing ids of all connections that lead to a sender.
  [[nodiscard]] std::vector<Bytes> connections() const;

  [[nodiscard]] std::size_t size() const { return routes_; }

private:
  struct Connection {
    int descriptor = -1;
    std::list<SenderId> senders; // the one silent for longest first
    std::uint64_t heard = 0;     // counts hellos: when this connection said its last one
  };
  using Connections = std::map<Bytes, Connection, std::less<>>;
  struct Route {
    Connections::iterator connection;
    std::list<SenderId>::iterator sender; // in the connection's list
  };
  using Senders = std::map<SenderId, std::vector<Route>>;

  // Orders connections: the one with most routes is last; of equals, the one silent for longest.
  struct Rank {
    std::size_t routes = 0;
    std::uint64_t heard = 0;
    Connections::iterator connection;

    bool operator<(const Rank &other) const {
      return routes != other.routes ? routes < other.routes : heard > other.heard;
    }
  };

  Connections::iterator find_or_add(const PeerConnection &connection);
  [[nodiscard]] static Rank rank_of(Connections::iterator connection);
  void add_route(std::vector<Route> &routes, const SenderId &sender, Connections::iterator connection);
  void drop_route(Connections::iterator connection, std::list<SenderId>::iterator sender);
  void forget(Connections::iterator connection);

  Senders senders_;
  Connections connections_;
  std::map<int, Bytes> by_descriptor_; // the routing id of the newest connection
  std::set<Rank> ranks_;               // of the connections that have routes
  std::uint64_t heard_ = 0;
  std::size_t routes_ = 0;
};

} // namespace onced::worker
