#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <zmq.hpp>

#include "base/wake.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/ids.hpp"
#include "onced/limits.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::sender {

// A sender's two sockets to one worker. Nothing here blocks but `wait`. One thread, except `wake`.
class Connection {
public:
  // Errors: `endpoint`.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::string &jobs_endpoint,
                                                                const std::string &replies_endpoint);

  // Interrupts `wait`. Any thread.
  void wake() { wake_.ring(); }

  struct Events {
    bool connected = false; // the replies socket has a new connection, on which the worker does not know us yet
    bool replies = false;   // `receive` has something
  };
  // Waits until something happens, or so long. `for_room`: also until `send_batch` may succeed again.
  [[nodiscard]] Events wait(MonotonicTime::duration at_most, bool for_replies, bool for_room);

  // As `wait` has found them.
  [[nodiscard]] wire::Link jobs_link() const { return jobs_.link(); }
  [[nodiscard]] wire::Link replies_link() const { return replies_.link(); }

  // False: the worker is not connected, or its pipe is full; nothing was sent.
  [[nodiscard]] bool send_hello(const SenderId &sender);
  [[nodiscard]] bool send_batch(const SenderId &sender, std::span<const wire::BatchEntry> entries);

  // The next message of the worker; nothing: there is none now. Views in `message` are valid until the next call.
  [[nodiscard]] std::optional<wire::WorkerFraming> receive(wire::WorkerMessage &message);

  // Keeps to the limits of the worker where they are below ours.
  void obey(const wire::Greeting &greeting);
  [[nodiscard]] std::size_t jobs_per_message() const { return jobs_per_message_; }
  [[nodiscard]] std::size_t job_bytes_per_message() const { return job_bytes_per_message_; }

private:
  Connection() = default;

  zmq::context_t context_;
  wire::MonitoredSocket jobs_;
  wire::MonitoredSocket replies_;
  Wake wake_;
  zmq::message_t frame_;
  wire::WorkerMessageDecoder decoder_;
  Bytes batch_;
  std::size_t jobs_per_message_ = limits::deliveries_per_send;
  std::size_t job_bytes_per_message_ = limits::window_bytes_max;
};

} // namespace onced::sender
