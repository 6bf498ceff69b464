#include "sender/connection.hpp"

#include <algorithm>
#include <array>

namespace onced::sender {
namespace {

// What the framing adds to each job of a batch, at most; the envelope's own bytes are limits::envelope_bytes_max.
constexpr std::size_t entry_bytes_max = 48;

// The bytes of jobs that fit a message of so many bytes, when it holds so many jobs.
std::size_t job_bytes_within(std::size_t message_bytes, std::size_t jobs) {
  const std::size_t framing = limits::envelope_bytes_max + jobs * entry_bytes_max;
  return message_bytes > framing ? message_bytes - framing : 0;
}

static_assert(limits::message_bytes_max > limits::deliveries_per_send * entry_bytes_max + limits::envelope_bytes_max,
              "a full message of small jobs is mostly jobs");

} // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string &jobs_endpoint,
                                                     const std::string &replies_endpoint) {
  std::unique_ptr<Connection> connection(new Connection);
  auto jobs = wire::connect_monitored_jobs(connection->context_, jobs_endpoint);
  if (!jobs) return tl::unexpected(jobs.error());
  connection->jobs_ = std::move(*jobs);

  auto replies = wire::connect_monitored_replies(connection->context_, replies_endpoint);
  if (!replies) return tl::unexpected(replies.error());
  connection->replies_ = std::move(*replies);
  connection->job_bytes_per_message_ = job_bytes_within(limits::message_bytes_max, limits::deliveries_per_send);
  return connection;
}

Connection::Events Connection::wait(MonotonicTime::duration at_most, bool for_replies, bool for_room) {
  const auto replies_events = static_cast<short>(for_replies ? ZMQ_POLLIN : 0);
  const auto jobs_events = static_cast<short>(for_room ? ZMQ_POLLOUT : 0);
  std::array<zmq::pollitem_t, 5> items{{
      {.socket = nullptr, .fd = wake_.descriptor(), .events = ZMQ_POLLIN, .revents = 0},
      {.socket = replies_.monitor().handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
      {.socket = jobs_.monitor().handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
      {.socket = replies_.socket().handle(), .fd = 0, .events = replies_events, .revents = 0},
      {.socket = jobs_.socket().handle(), .fd = 0, .events = jobs_events, .revents = 0},
  }};
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(std::max(at_most, MonotonicTime::duration{0}));
  try {
    zmq::poll(items.data(), items.size(), timeout);
  } catch (const zmq::error_t &error) {
    if (error.num() != EINTR) throw;
    return {};
  }
  if ((items[0].revents & ZMQ_POLLIN) != 0) wake_.clear();
  if ((items[2].revents & ZMQ_POLLIN) != 0) jobs_.follow();
  return {.connected = (items[1].revents & ZMQ_POLLIN) != 0 && replies_.follow(),
          .replies = (items[3].revents & ZMQ_POLLIN) != 0};
}

bool Connection::send_hello(const SenderId &sender) {
  const Bytes hello = wire::encode_hello(sender);
  return replies_.socket().send(zmq::buffer(hello), zmq::send_flags::dontwait).has_value();
}

bool Connection::send_batch(const SenderId &sender, std::span<const wire::BatchEntry> entries) {
  batch_.clear();
  wire::encode_batch(sender, entries, batch_);
  return jobs_.socket().send(zmq::buffer(batch_), zmq::send_flags::dontwait).has_value();
}

std::optional<wire::WorkerFraming> Connection::receive(wire::WorkerMessage &message) {
  if (!replies_.socket().recv(frame_, zmq::recv_flags::dontwait)) return std::nullopt;
  if (!replies_.socket().get(zmq::sockopt::rcvmore)) return decoder_.decode(frame_.to_string_view(), message);
  wire::discard_rest(replies_.socket());
  return wire::WorkerFraming::malformed;
}

void Connection::obey(const wire::Greeting &greeting) {
  const auto message_bytes = std::min<std::uint64_t>(greeting.message_bytes_max, limits::message_bytes_max);
  const auto jobs = std::min<std::uint64_t>(greeting.deliveries_per_message_max, limits::deliveries_per_send);
  jobs_per_message_ = std::max<std::size_t>(jobs, 1);
  job_bytes_per_message_ = job_bytes_within(message_bytes, jobs_per_message_);
}

} // namespace onced::sender
