#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>

#include <zmq.hpp>

#include "onced/bytes.hpp"

namespace onced::worker {

// How many bytes each peer of a socket has been sent that ZeroMQ still holds: of frames that the peer's kernel buffer
// has no room for, as it does not read. ZeroMQ itself counts messages, of any size. One thread, except that ZeroMQ
// frees messages on threads of its own.
class Unread {
public:
  // Whether a frame of so many bytes may be sent to the peer: with it the peer leaves no more than
  // limits::unread_bytes_max unread, or it has nothing else to read.
  [[nodiscard]] bool has_room(BytesView routing_id, std::size_t bytes) const;

  // The frame as a message for this peer, of whose unread bytes it is a part until ZeroMQ has passed it on.
  [[nodiscard]] zmq::message_t message_for(BytesView routing_id, Bytes frame);

private:
  using Count = std::shared_ptr<std::atomic<std::size_t>>;

  void forget_who_has_read_all();

  std::unordered_map<Bytes, Count> counts_; // by routing id
  std::size_t forget_at_ = 1024;            // counts at which those that are 0 are forgotten
};

} // namespace onced::worker
