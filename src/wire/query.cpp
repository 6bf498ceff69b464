#include "wire/query.hpp"

#include <zmq.hpp>

#include "onced/limits.hpp"
#include "wire/control_endpoint.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::wire {
namespace {

Error no_answer(const std::string &endpoint) {
  return {.code = ErrorCode::timed_out,
          .concerns = endpoint,
          .cause = "no answer in time",
          .remedy = "check that a worker runs there, or give it longer with --deadline"};
}

Error too_long(const std::string &endpoint) {
  return {.code = ErrorCode::usage,
          .concerns = endpoint,
          .cause = "the request is longer than the " + std::to_string(limits::query_bytes_max) +
                   " bytes that a worker reads",
          .remedy = "make it shorter, or stop the worker: on the database itself it may have any length"};
}

// Waits for one of `events` on the socket. False when the deadline passes first.
bool wait_for(zmq::socket_t &socket, short events, MonotonicTime deadline) {
  zmq::pollitem_t item{.socket = socket.handle(), .fd = 0, .events = events, .revents = 0};
  do {
    try {
      if (zmq::poll(&item, 1, left_until(deadline)) > 0) return true;
    } catch (const zmq::error_t &error) {
      if (error.num() != EINTR) throw;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

Result<Bytes> exchange(zmq::socket_t &socket, const std::string &endpoint, BytesView request, MonotonicTime deadline) {
  // One question, one answer: nobody else needs to find this peer again, so any id will do.
  const Bytes question = encode_query(SenderId{}, request);
  if (question.size() > limits::query_bytes_max) return tl::unexpected(too_long(endpoint));
  if (!wait_for(socket, ZMQ_POLLOUT, deadline)) return tl::unexpected(no_answer(endpoint));
  socket.send(zmq::buffer(question), zmq::send_flags::dontwait);

  WorkerMessageDecoder decoder;
  WorkerMessage message;
  zmq::message_t frame;
  while (wait_for(socket, ZMQ_POLLIN, deadline)) {
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) continue;
    switch (decoder.decode(frame.to_string_view(), message)) {
    case WorkerFraming::answer:
      return Bytes(message.answer);
    case WorkerFraming::unsupported:
      return tl::unexpected(Error{.code = ErrorCode::unsupported_protocol,
                                  .concerns = endpoint,
                                  .cause = "the worker does not speak our protocol version",
                                  .remedy = "use the command of the worker's release"});
    default:
      break; // not for us
    }
  }
  return tl::unexpected(no_answer(endpoint));
}

} // namespace

Result<Bytes> ask(const std::string &endpoint, BytesView request, MonotonicTime deadline) {
  zmq::context_t context;
  auto socket = connect_replies(context, endpoint);
  if (!socket) return tl::unexpected(socket.error());
  return exchange(*socket, endpoint, request, deadline);
}

Result<Bytes> ask_directory(const std::filesystem::path &directory, BytesView request, MonotonicTime deadline) {
  const auto control = ControlEndpoint::in(directory);
  if (!control) return tl::unexpected(control.error());
  zmq::context_t context;
  auto socket = connect_replies(context, control->endpoint());
  if (!socket) return tl::unexpected(socket.error());
  return exchange(*socket, (directory / "control.sock").string(), request, deadline);
}

} // namespace onced::wire
