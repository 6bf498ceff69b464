#pragma once

#include <list>
#include <map>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"

namespace onced::worker {

// Where each sender last spoke from. A sender is known by its id in its greeting, never by a routing id, which anyone
// may claim; the newest greeting wins. Holds limits::known_senders_max; the one silent for longest is forgotten. One
// thread.
class Routes {
public:
  void learn(const SenderId &sender, BytesView routing_id);

  // Null: not known.
  [[nodiscard]] const Bytes *find(const SenderId &sender) const;

  // Calls `visit` with the routing id of every sender.
  template <class Visit> void for_each(Visit &&visit) const {
    for (const auto &[sender, route] : routes_)
      visit(route.routing_id);
  }

  [[nodiscard]] std::size_t size() const { return routes_.size(); }

private:
  struct Route {
    Bytes routing_id;
    std::list<SenderId>::iterator age;
  };
  std::map<SenderId, Route> routes_;
  std::list<SenderId> by_age_; // the one silent for longest first
};

} // namespace onced::worker
