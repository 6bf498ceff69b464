#include "wire/raw_message.hpp"

#include <algorithm>
#include <limits>

#include <zmq.hpp>

#include "wire/sockets.hpp"

namespace onced::wire {
namespace {

// ZeroMQ takes milliseconds as an int: 24 days at most.
int option_of(std::chrono::milliseconds wait) {
  return static_cast<int>(std::min<std::chrono::milliseconds::rep>(wait.count(), std::numeric_limits<int>::max()));
}

} // namespace

Result<void> send_raw_message(const std::string &jobs_endpoint, BytesView message, MonotonicTime deadline) {
  zmq::context_t context;
  auto socket = connect_jobs(context, jobs_endpoint);
  if (!socket) return tl::unexpected(socket.error());
  // The end of the context, at the return, waits so long for the bytes to leave.
  const int patience_ms = option_of(left_until(deadline));
  socket->set(zmq::sockopt::linger, patience_ms);
  socket->set(zmq::sockopt::sndtimeo, patience_ms);
  if (socket->send(zmq::const_buffer(message.data(), message.size()), zmq::send_flags::none)) return {};
  return tl::unexpected(Error{.code = ErrorCode::timed_out,
                              .concerns = jobs_endpoint,
                              .cause = "no worker took the message in time",
                              .remedy = "check that a worker runs there, or give it longer with --deadline"});
}

} // namespace onced::wire
