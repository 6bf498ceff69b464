#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include <zmq.hpp>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/limits.hpp"
#include "store/descriptor.hpp"

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

// The same, with a PAIR socket on which ZeroMQ tells of each new connection (zmq_socket_monitor, HANDSHAKE_SUCCEEDED).
struct MonitoredSocket {
  zmq::socket_t socket;
  zmq::socket_t monitor;
};
[[nodiscard]] Result<MonitoredSocket> connect_monitored_replies(zmq::context_t &context, const std::string &endpoint);

// Takes the parts of the message in hand that nobody wants.
void discard_rest(zmq::socket_t &socket);

// What is left of a wait, for ZeroMQ's options and polls; not below 0.
[[nodiscard]] std::chrono::milliseconds left_until(MonotonicTime deadline);

// Where a socket was bound, with the port that `*` became.
[[nodiscard]] std::string bound_endpoint(zmq::socket_t &socket);

// The endpoint of `control.sock` in a data directory, reached through an open descriptor of the directory: the address
// of a Unix socket holds 107 bytes, and a directory's path may be longer. Valid as long as this object.
class ControlEndpoint {
public:
  // Errors: `not_found`, `store_unavailable`.
  [[nodiscard]] static Result<ControlEndpoint> in(const std::filesystem::path &directory);

  [[nodiscard]] std::string endpoint() const;

private:
  explicit ControlEndpoint(store::Descriptor directory) : directory_(std::move(directory)) {}

  store::Descriptor directory_;
};

} // namespace onced::wire
