#include "worker/routes.hpp"

#include "onced/limits.hpp"

namespace onced::worker {

void Routes::learn(const SenderId &sender, BytesView routing_id) {
  if (const auto known = routes_.find(sender); known != routes_.end()) {
    known->second.routing_id.assign(routing_id);
    by_age_.splice(by_age_.end(), by_age_, known->second.age);
    return;
  }
  if (routes_.size() == limits::known_senders_max) {
    routes_.erase(by_age_.front());
    by_age_.pop_front();
  }
  const auto age = by_age_.insert(by_age_.end(), sender);
  routes_.emplace(sender, Route{.routing_id = Bytes(routing_id), .age = age});
}

const Bytes *Routes::find(const SenderId &sender) const {
  const auto known = routes_.find(sender);
  return known == routes_.end() ? nullptr : &known->second.routing_id;
}

} // namespace onced::worker
