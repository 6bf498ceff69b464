#include "worker/query_turns.hpp"

#include <algorithm>

#include "admin/queries.hpp"
#include "onced/limits.hpp"

namespace onced::worker {

QueryLane lane_of(std::string_view name, bool control) {
  const admin::Query *query = admin::find_query(name);
  if (control && query != nullptr && query->changes()) return QueryLane::changes;
  const bool scans = query != nullptr && query->scans;
  if (control) return scans ? QueryLane::operator_scans : QueryLane::operator_reads;
  return scans ? QueryLane::scans : QueryLane::reads;
}

std::optional<Query> QueryTurns::put(Query query) {
  const bool control = query.peer.control;
  const Name name = name_of(query.peer);
  const auto known = by_name_.find(name);
  const std::size_t mine = known == by_name_.end() ? 0 : known->second->waiting.size();
  if (mine == limits::queries_a_connection_waiting_max) return query;

  std::optional<Query> refused;
  std::size_t &waiting = control ? control_waiting_ : network_waiting_;
  if (waiting == (control ? limits::operator_queries_waiting_max : limits::network_queries_waiting_max)) {
    const auto most = with_most_waiting(control);
    if (most->waiting.size() <= mine + 1) return query;
    refused = std::move(most->waiting.back());
    most->waiting.pop_back();
    --waiting;
  }
  const auto connection = known != by_name_.end() ? known->second : connections_.emplace(connections_.end());
  connection->control = control;
  connection->waiting.push_back(std::move(query));
  by_name_[name] = connection;
  ++waiting;
  return refused;
}

std::optional<Query> QueryTurns::take(QueryLane lane) {
  for (auto connection = connections_.begin(); connection != connections_.end(); ++connection) {
    if (connection->running || connection->waiting.empty() || connection->waiting.front().lane != lane) continue;
    Query query = std::move(connection->waiting.front());
    connection->waiting.pop_front();
    connection->running = true;
    --(connection->control ? control_waiting_ : network_waiting_);
    connections_.splice(connections_.end(), connections_, connection);
    return query;
  }
  return std::nullopt;
}

void QueryTurns::done(const PeerAddress &peer) {
  const auto known = by_name_.find(name_of(peer));
  if (known == by_name_.end()) return;
  known->second->running = false;
  if (!known->second->waiting.empty()) return;
  connections_.erase(known->second);
  by_name_.erase(known);
}

QueryTurns::Connections::iterator QueryTurns::with_most_waiting(bool control) {
  const auto waiting = [&](const Connection &connection) {
    return connection.control == control ? connection.waiting.size() : 0;
  };
  return std::max_element(
      connections_.begin(), connections_.end(),
      [&](const Connection &one, const Connection &other) { return waiting(one) < waiting(other); });
}

} // namespace onced::worker
