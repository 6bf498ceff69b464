#include "worker/routes.hpp"

#include <algorithm>

#include "onced/limits.hpp"

namespace onced::worker {

void Routes::learn(const SenderId &sender, const PeerConnection &connection) {
  const auto from = find_or_add(connection);
  ranks_.erase(rank_of(from));
  from->second.heard = ++heard_;
  ranks_.insert(rank_of(from));

  auto &routes = senders_[sender];
  const auto known =
      std::find_if(routes.begin(), routes.end(), [&](const Route &route) { return route.connection == from; });
  if (known != routes.end()) {
    from->second.senders.splice(from->second.senders.end(), from->second.senders, known->sender);
    return;
  }
  if (routes.size() == limits::routes_a_sender_max) {
    const Route newest = routes.back();
    add_route(routes, sender, from); // first, so that the sender is not forgotten in between
    drop_route(newest.connection, newest.sender);
  } else {
    add_route(routes, sender, from);
  }
  if (routes_ <= limits::known_senders_max) return;
  const auto most = ranks_.rbegin()->connection;
  drop_route(most, most->second.senders.begin());
}

void Routes::forget(BytesView routing_id) {
  if (const auto known = connections_.find(routing_id); known != connections_.end()) forget(known);
}

std::vector<Bytes> Routes::find(const SenderId &sender) const {
  std::vector<Bytes> found;
  const auto known = senders_.find(sender);
  if (known == senders_.end()) return found;
  for (const Route &route : known->second)
    found.push_back(route.connection->first);
  return found;
}

std::vector<Bytes> Routes::connections() const {
  std::vector<Bytes> all;
  for (const auto &[routing_id, connection] : connections_)
    all.push_back(routing_id);
  return all;
}

Routes::Connections::iterator Routes::find_or_add(const PeerConnection &connection) {
  if (connection.descriptor >= 0) {
    const auto before = by_descriptor_.find(connection.descriptor);
    if (before != by_descriptor_.end() && before->second != connection.routing_id) forget(Bytes(before->second));
    by_descriptor_[connection.descriptor] = connection.routing_id;
  }
  const auto [at, added] = connections_.try_emplace(connection.routing_id);
  at->second.descriptor = connection.descriptor;
  return at;
}

Routes::Rank Routes::rank_of(Connections::iterator connection) {
  return {.routes = connection->second.senders.size(), .heard = connection->second.heard, .connection = connection};
}

void Routes::add_route(std::vector<Route> &routes, const SenderId &sender, Connections::iterator connection) {
  auto &senders = connection->second.senders;
  ranks_.erase(rank_of(connection));
  routes.push_back({.connection = connection, .sender = senders.insert(senders.end(), sender)});
  ranks_.insert(rank_of(connection));
  ++routes_;
}

// `sender` points into the connection's list. A connection without routes is forgotten.
void Routes::drop_route(Connections::iterator connection, std::list<SenderId>::iterator sender) {
  const auto known = senders_.find(*sender);
  std::erase_if(known->second, [&](const Route &route) { return route.connection == connection; });
  if (known->second.empty()) senders_.erase(known);
  ranks_.erase(rank_of(connection));
  connection->second.senders.erase(sender);
  --routes_;
  if (!connection->second.senders.empty()) {
    ranks_.insert(rank_of(connection));
    return;
  }
  const auto descriptor = by_descriptor_.find(connection->second.descriptor);
  if (descriptor != by_descriptor_.end() && descriptor->second == connection->first) by_descriptor_.erase(descriptor);
  connections_.erase(connection);
}

void Routes::forget(Connections::iterator connection) {
  for (std::size_t left = connection->second.senders.size(); left > 0; --left)
    drop_route(connection, connection->second.senders.begin());
}

} // namespace onced::worker
