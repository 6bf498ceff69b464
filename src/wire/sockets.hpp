#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <zmq.hpp>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/limits.hpp"

// The sockets of docs/protocol.md with the options they need; ZeroMQ's defaults are unbounded (message size, linger).
namespace onced::wire {

// Each binds or connects before it returns. Errors: `endpoint`, naming it.
// PULL. So many messages may wait in it for each sender.
[[nodiscard]] Result<zmq::socket_t> bind_jobs(zmq::context_t &context, const std::string &endpoint,
                                              int high_water_messages = limits::receive_high_water_messages_max);
[[nodiscard]] Result<zmq::socket_t> bind_replies(zmq::context_t &context, const std::string &endpoint); // ROUTER
[[nodiscard]] Result<zmq::socket_t> connect_jobs(zmq::context_t &context, const std::string &endpoint); // PUSH
// A DEALER without a routing id: a name that can be claimed is not to be trusted.
[[nodiscard]] Result<zmq::socket_t> connect_replies(zmq::context_t &context, const std::string &endpoint);

// How far the connection of a socket is.
enum class Link : std::uint8_t {
  none,    // nobody listens there
  silent,  // somebody does, and has not spoken ZeroMQ yet
  strange, // somebody did, and has ended the connection instead: it was no such socket
  open,
};

// A socket with a PAIR socket on which ZeroMQ tells of its connection (zmq_socket_monitor). Ends the telling before it
// closes either: ZeroMQ's own thread would wait for ever for a reader that is gone.
class MonitoredSocket {
public:
  MonitoredSocket() = default;
  MonitoredSocket(zmq::socket_t socket, zmq::socket_t monitor)
      : socket_(std::move(socket)), monitor_(std::move(monitor)) {}
  MonitoredSocket(MonitoredSocket &&) noexcept = default;
  MonitoredSocket &operator=(MonitoredSocket &&other) noexcept;
  ~MonitoredSocket() { end_telling(); }

  [[nodiscard]] zmq::socket_t &socket() { return socket_; }
  // Becomes readable when there is something to follow.
  [[nodiscard]] zmq::socket_t &monitor() { return monitor_; }
  // Takes what the monitor has to tell. True: there is a new connection.
  bool follow();
  [[nodiscard]] Link link() const { return link_; }

private:
  void end_telling();

  zmq::socket_t socket_;
  zmq::socket_t monitor_;
  Link link_ = Link::none;
};
[[nodiscard]] Result<MonitoredSocket> connect_monitored_jobs(zmq::context_t &context, const std::string &endpoint);
[[nodiscard]] Result<MonitoredSocket> connect_monitored_replies(zmq::context_t &context, const std::string &endpoint);

// Takes the parts of the message in hand that nobody wants.
void discard_rest(zmq::socket_t &socket);

// The descriptor of the connection that a message came over, by which connections are told apart; a later connection
// may have the number of a closed one. -1: ZeroMQ does not know. (ZMQ_SRCFD: of tcp and ipc, for PULL and ROUTER.)
[[nodiscard]] int connection_of(const zmq::message_t &message);

// What is left of a wait, for ZeroMQ's options and polls; not below 0.
[[nodiscard]] std::chrono::milliseconds left_until(MonotonicTime deadline);

// Where a socket was bound, with the port that `*` became.
[[nodiscard]] std::string bound_endpoint(zmq::socket_t &socket);

} // namespace onced::wire
