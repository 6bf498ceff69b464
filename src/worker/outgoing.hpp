#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"

namespace onced::worker {

// The way to a peer of one of the gateway's ROUTER sockets.
struct PeerAddress {
  bool control = false; // of control.sock, else of the replies socket
  Bytes routing_id;
};

// A frame for a sender (wherever it last spoke from) or for the peer that asked.
struct OutgoingFrame {
  std::variant<SenderId, PeerAddress> to;
  Bytes frame;
};

// Frames on their way from the worker and query threads to the gateway. Bounded: what does not fit is dropped, which
// the next delivery heals.
class Outgoing {
public:
  // `on_put` wakes the gateway; called from any thread.
  explicit Outgoing(std::function<void()> on_put) : on_put_(std::move(on_put)) {}

  // The frames of one batch, or one answer. Returns how many of them were dropped. Any thread.
  std::size_t put(std::vector<OutgoingFrame> frames);

  // Everything that was put, in order, a vector for each `put`. Gateway thread.
  [[nodiscard]] std::vector<std::vector<OutgoingFrame>> take();

private:
  std::function<void()> on_put_;
  std::mutex mutex_; // guards the rest
  std::vector<std::vector<OutgoingFrame>> waiting_;
  std::size_t bytes_ = 0;
};

} // namespace onced::worker
