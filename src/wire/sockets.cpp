#include "wire/sockets.hpp"

#include <cstring>

#include "wire/endpoint.hpp"

namespace onced::wire {
namespace {

// Half-open tcp connections are found and closed; a peer that is merely idle answers.
constexpr int heartbeat_interval_ms = 5'000;
constexpr int heartbeat_timeout_ms = 15'000;
// The same for the jobs sockets, by the kernel: where jobs wait, ZeroMQ reads nothing, so it would miss the answer to
// its own heartbeat, close the connection and, with the next one, take in as many messages again.
constexpr int keepalive_idle_s = 15;
constexpr int keepalive_interval_s = 5;
constexpr int keepalive_probes = 3;
// Replies that were handed over go out although the process is ending.
constexpr int replies_linger_ms = 1'000;
// A message that is being written when the sender stops will be sent again anyway.
constexpr int no_linger = 0;
// Messages of jobs in the sender's pipe: few, because what waits there is lost with the connection and sent again.
constexpr int jobs_send_high_water_messages = 4;

zmq::socket_t make_socket(zmq::context_t &context, zmq::socket_type type, int linger_ms,
                          std::size_t message_bytes_max) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, linger_ms);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(message_bytes_max));
  socket.set(zmq::sockopt::rcvhwm, limits::receive_high_water_messages_max);
  socket.set(zmq::sockopt::sndhwm, limits::send_high_water_messages);
  return socket;
}

void add_heartbeats(zmq::socket_t &socket) {
  socket.set(zmq::sockopt::heartbeat_ivl, heartbeat_interval_ms);
  socket.set(zmq::sockopt::heartbeat_timeout, heartbeat_timeout_ms);
}

void add_keepalive(zmq::socket_t &socket) {
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, keepalive_idle_s);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, keepalive_interval_s);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, keepalive_probes);
}

zmq::socket_t make_dealer(zmq::context_t &context) {
  auto socket = make_socket(context, zmq::socket_type::dealer, no_linger, limits::answer_bytes_max);
  socket.set(zmq::sockopt::immediate, true);
  add_heartbeats(socket);
  return socket;
}

// IPv6 is asked for by an address of it only: with the option on, a name may lead to another address than a peer's.
void bind(zmq::socket_t &socket, const Endpoint &at) {
  socket.set(zmq::sockopt::ipv6, at.is_ipv6);
  socket.bind(at.address);
}

void connect(zmq::socket_t &socket, const Endpoint &at) {
  socket.set(zmq::sockopt::ipv6, at.is_ipv6);
  socket.connect(at.address);
}

zmq::socket_t make_push(zmq::context_t &context) {
  auto socket = make_socket(context, zmq::socket_type::push, no_linger, limits::message_bytes_max);
  socket.set(zmq::sockopt::sndhwm, jobs_send_high_water_messages);
  add_keepalive(socket);
  // Nothing is queued for a worker that is not there: its jobs stay with the sender.
  socket.set(zmq::sockopt::immediate, true);
  return socket;
}

// The first of the two frames of an event: 16 bits of it, then a value that nobody here needs.
std::uint16_t event_in(const zmq::message_t &frame) {
  std::uint16_t event = 0;
  if (frame.size() >= sizeof event) std::memcpy(&event, frame.data(), sizeof event);
  return event;
}

// A connection that fails comes round again and again; what was found of its end stays until it is found otherwise.
Link link_after(Link link, std::uint16_t event) {
  switch (event) {
  case ZMQ_EVENT_CONNECTED:
    return link == Link::strange ? Link::strange : Link::silent;
  case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
    return Link::open;
  case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
  case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
  case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    return Link::strange;
  case ZMQ_EVENT_DISCONNECTED:
    return link == Link::open ? Link::none : Link::strange;
  case ZMQ_EVENT_CLOSED: // it was refused
    return Link::none;
  default:
    return link;
  }
}

constexpr int link_events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                            ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;

// `monitor_endpoint` is a name of the context's own.
MonitoredSocket connect_monitored(zmq::context_t &context, zmq::socket_t socket, const char *monitor_endpoint,
                                  const Endpoint &at) {
  // Before the connection, so that the first one is told of too.
  if (zmq_socket_monitor(socket.handle(), monitor_endpoint, link_events) != 0) throw zmq::error_t();
  zmq::socket_t monitor(context, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, no_linger);
  monitor.connect(monitor_endpoint);
  MonitoredSocket monitored(std::move(socket), std::move(monitor));
  connect(monitored.socket(), at);
  return monitored;
}

Error endpoint_error(const std::string &endpoint, const std::string &doing, const zmq::error_t &error) {
  return {.code = ErrorCode::endpoint,
          .concerns = endpoint,
          .cause = "cannot " + doing + ": " + error.what(),
          .remedy = error.num() == EADDRINUSE ? "stop what listens there, or choose another port (* takes a free one)"
                                              : "give an endpoint such as tcp://127.0.0.1:5570"};
}

// Runs `make`, which makes and opens a socket for an endpoint, and turns ZeroMQ's exceptions into an Error.
template <class Make>
auto guarded(const std::string &text, EndpointUse use, const std::string &doing, Make &&make)
    -> Result<decltype(make(std::declval<const Endpoint &>()))> {
  const auto endpoint = read_endpoint(text, use);
  if (!endpoint) return tl::unexpected(endpoint.error());
  try {
    return make(*endpoint);
  } catch (const zmq::error_t &error) {
    return tl::unexpected(endpoint_error(text, doing, error));
  }
}

} // namespace

Result<zmq::socket_t> bind_jobs(zmq::context_t &context, const std::string &endpoint, int high_water_messages) {
  return guarded(endpoint, EndpointUse::bind, "bind the jobs socket", [&](const Endpoint &at) {
    auto socket = make_socket(context, zmq::socket_type::pull, no_linger, limits::message_bytes_max);
    socket.set(zmq::sockopt::rcvhwm, high_water_messages);
    add_keepalive(socket);
    bind(socket, at);
    return socket;
  });
}

Result<zmq::socket_t> bind_replies(zmq::context_t &context, const std::string &endpoint) {
  return guarded(endpoint, EndpointUse::bind, "bind the replies socket", [&](const Endpoint &at) {
    auto socket = make_socket(context, zmq::socket_type::router, replies_linger_ms, limits::query_bytes_max);
    // A reply to a peer that is gone is reported, and dropped by us, rather than dropped in silence.
    socket.set(zmq::sockopt::router_mandatory, true);
    add_heartbeats(socket);
    bind(socket, at);
    return socket;
  });
}

Result<zmq::socket_t> connect_jobs(zmq::context_t &context, const std::string &endpoint) {
  return guarded(endpoint, EndpointUse::connect, "connect to the jobs socket", [&](const Endpoint &at) {
    auto socket = make_push(context);
    connect(socket, at);
    return socket;
  });
}

Result<zmq::socket_t> connect_replies(zmq::context_t &context, const std::string &endpoint) {
  return guarded(endpoint, EndpointUse::connect, "connect to the replies socket", [&](const Endpoint &at) {
    auto socket = make_dealer(context);
    connect(socket, at);
    return socket;
  });
}

Result<MonitoredSocket> connect_monitored_jobs(zmq::context_t &context, const std::string &endpoint) {
  return guarded(endpoint, EndpointUse::connect, "connect to the jobs socket", [&](const Endpoint &at) {
    return connect_monitored(context, make_push(context), "inproc://jobs-monitor", at);
  });
}

Result<MonitoredSocket> connect_monitored_replies(zmq::context_t &context, const std::string &endpoint) {
  return guarded(endpoint, EndpointUse::connect, "connect to the replies socket", [&](const Endpoint &at) {
    return connect_monitored(context, make_dealer(context), "inproc://replies-monitor", at);
  });
}

MonitoredSocket &MonitoredSocket::operator=(MonitoredSocket &&other) noexcept {
  end_telling();
  socket_ = std::move(other.socket_);
  monitor_ = std::move(other.monitor_);
  link_ = other.link_;
  return *this;
}

void MonitoredSocket::end_telling() {
  if (socket_) zmq_socket_monitor(socket_.handle(), nullptr, 0);
}

bool MonitoredSocket::follow() {
  bool connected = false;
  zmq::message_t part;
  while (monitor_.recv(part, zmq::recv_flags::dontwait)) {
    const std::uint16_t event = event_in(part);
    link_ = link_after(link_, event);
    connected = connected || event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    while (monitor_.get(zmq::sockopt::rcvmore))
      static_cast<void>(monitor_.recv(part, zmq::recv_flags::none));
  }
  return connected;
}

void discard_rest(zmq::socket_t &socket) {
  zmq::message_t part;
  while (socket.get(zmq::sockopt::rcvmore))
    static_cast<void>(socket.recv(part, zmq::recv_flags::none));
}

int connection_of(const zmq::message_t &message) {
  return zmq_msg_get(message.handle(), ZMQ_SRCFD);
}

std::chrono::milliseconds left_until(MonotonicTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds{0});
}

std::string bound_endpoint(zmq::socket_t &socket) {
  return socket.get(zmq::sockopt::last_endpoint);
}

} // namespace onced::wire
