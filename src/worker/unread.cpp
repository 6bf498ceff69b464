#include "worker/unread.hpp"

#include <algorithm>
#include <utility>

#include "onced/limits.hpp"

namespace onced::worker {
namespace {

// A frame that ZeroMQ holds.
struct Held {
  Bytes frame;
  std::shared_ptr<std::atomic<std::size_t>> count;
};

void let_go(void * /*data*/, void *hint) {
  const std::unique_ptr<Held> held(static_cast<Held *>(hint));
  *held->count -= held->frame.size();
}

} // namespace

bool Unread::has_room(BytesView routing_id, std::size_t bytes) const {
  const auto known = counts_.find(Bytes(routing_id));
  const std::size_t unread = known == counts_.end() ? 0 : known->second->load();
  return unread == 0 || unread + bytes <= limits::unread_bytes_max;
}

zmq::message_t Unread::message_for(BytesView routing_id, Bytes frame) {
  if (counts_.size() >= forget_at_) forget_who_has_read_all();
  Count &count = counts_[Bytes(routing_id)];
  if (!count) count = std::make_shared<std::atomic<std::size_t>>(0);
  *count += frame.size();
  auto held = std::make_unique<Held>(Held{.frame = std::move(frame), .count = count});
  char *const data = held->frame.data();
  const std::size_t size = held->frame.size();
  return {data, size, let_go, held.release()};
}

// Peers come and go, and nobody says that one has gone; ZeroMQ has freed what it held for it.
void Unread::forget_who_has_read_all() {
  std::erase_if(counts_, [](const auto &entry) { return *entry.second == 0; });
  forget_at_ = std::max(forget_at_, 2 * counts_.size());
}

} // namespace onced::worker
