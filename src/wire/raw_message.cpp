#include "wire/raw_message.hpp"

#include <zmq.hpp>

#include "wire/sockets.hpp"

namespace onced::wire {
Result<void> send_raw_message(const std::string &jobs_endpoint, BytesView message, MonotonicTime deadline) {
  zmq::context_t context;
  auto socket = connect_jobs(context, jobs_endpoint);
  if (!socket) return tl::unexpected(socket.error());
  // Closing the context below waits so long for the bytes to leave.
  socket->set(zmq::sockopt::linger, static_cast<int>(left_until(deadline).count()));
  socket->set(zmq::sockopt::sndtimeo, static_cast<int>(left_until(deadline).count()));
  if (socket->send(zmq::const_buffer(message.data(), message.size()), zmq::send_flags::none)) return {};
  return tl::unexpected(Error{.code = ErrorCode::timed_out,
                              .concerns = jobs_endpoint,
                              .cause = "no worker took the message in time",
                              .remedy = "check that a worker runs there, or give it longer with --deadline"});
}

} // namespace onced::wire
