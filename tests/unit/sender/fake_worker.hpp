#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "onced/limits.hpp"
#include "support/eventually.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::testing {

// Only a failing test waits so long.
inline MonotonicTime soon() {
  return patience_from_now();
}
// As a deadline it has passed: for calls that must not wait.
inline MonotonicTime now() {
  return std::chrono::steady_clock::now();
}

inline BootId boot_number(std::uint8_t number) {
  BootId boot;
  boot.bytes.fill(number);
  return boot;
}

// The two sockets of a worker, with nothing behind them: the test says what it hears and what it answers. One thread.
class FakeWorker {
public:
  FakeWorker() {
    jobs_ = opened(wire::bind_jobs(context_, "tcp://127.0.0.1:*"));
    replies_ = opened(wire::bind_replies(context_, "tcp://127.0.0.1:*"));
    jobs_endpoint_ = wire::bound_endpoint(jobs_);
    replies_endpoint_ = wire::bound_endpoint(replies_);
  }

  [[nodiscard]] const std::string &jobs_endpoint() const { return jobs_endpoint_; }
  [[nodiscard]] const std::string &replies_endpoint() const { return replies_endpoint_; }

  // Called again and again while a greeting does not come. A sender that could not say it at once says it again later,
  // and a clock that stands still never makes it later.
  std::function<void()> while_no_greeting;

  // The sender's next greeting. From then on `say` reaches it.
  SenderId hear_hello() {
    zmq::message_t routing_id;
    zmq::message_t frame;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (while_no_greeting && !is_readable(replies_, std::chrono::milliseconds{500}) &&
           std::chrono::steady_clock::now() < deadline)
      while_no_greeting();
    receive(replies_, routing_id, "a greeting");
    receive(replies_, frame, "a greeting");
    routing_id_ = routing_id.to_string();
    wire::PeerMessage message;
    if (wire::decode_peer_message(frame.to_string_view(), message) != wire::PeerFraming::known || message.request) {
      throw std::runtime_error("the sender said something that is no greeting");
    }
    return message.sender;
  }

  // The first greeting on a connection that was not heard before. A sender greets more than once, so what its
  // forerunner said last may still lie in the socket, and an answer to that would reach nobody.
  SenderId hear_new_sender() {
    while (true) {
      const SenderId sender = hear_hello();
      if (heard_.insert(routing_id_).second) return sender;
    }
  }

  // Whether a greeting has arrived that was not heard.
  bool has_hello() { return is_readable(replies_); }
  void forget_hellos() {
    while (has_hello())
      hear_hello();
  }

  void say(BytesView frame) {
    replies_.send(zmq::const_buffer(routing_id_.data(), routing_id_.size()), zmq::send_flags::sndmore);
    replies_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  }
  void say_in_two_parts(BytesView frame) {
    replies_.send(zmq::const_buffer(routing_id_.data(), routing_id_.size()), zmq::send_flags::sndmore);
    replies_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::sndmore);
    replies_.send(zmq::str_buffer("more"), zmq::send_flags::none);
  }
  void greet(const BootId &boot) { say(wire::encode_greeting(boot, Durability::fsync)); }
  void reply(const wire::Reply &reply, Durability durability = Durability::fsync) {
    wire::RepliesEncoder encoder(boot_number(1), durability);
    encoder.add(reply);
    say(encoder.take().at(0));
  }

  // One job as it came.
  struct Arrived {
    SenderId sender;
    Sequence sequence{0};
    Tag tag;
    std::uint32_t attempt = 0;
    WallTime issued_at{};
    Bytes job;
  };

  // The jobs of the next message.
  std::vector<Arrived> take_message() {
    zmq::message_t message;
    receive(jobs_, message, "jobs");
    wire::Batch batch;
    if (wire::decode_batch(message.to_string_view(), batch) != wire::Framing::batch) {
      throw std::runtime_error("the sender sent something that is no batch");
    }
    std::vector<Arrived> arrived;
    for (const wire::BatchEntry &entry : batch.entries) {
      arrived.push_back({batch.sender, entry.sequence, entry.tag, entry.attempt, entry.issued_at, Bytes(entry.job)});
    }
    return arrived;
  }
  // So many jobs, in however many messages they come.
  std::vector<Arrived> take(std::size_t count) {
    std::vector<Arrived> arrived;
    while (arrived.size() < count) {
      for (Arrived &job : take_message())
        arrived.push_back(std::move(job));
    }
    if (arrived.size() > count) throw std::runtime_error("the sender sent more jobs than were expected");
    return arrived;
  }
  // Whether anything has arrived that was not taken.
  bool has_jobs() { return is_readable(jobs_); }

  // Closes the replies socket, so that the sender's connection breaks, and binds another one at the same endpoint.
  void rebind_replies() {
    replies_.close();
    const auto deadline = std::chrono::steady_clock::now() + patience;
    // The port is free only when ZeroMQ's own thread has let go of it.
    while (true) {
      auto again = wire::bind_replies(context_, replies_endpoint_);
      if (again) {
        replies_ = std::move(*again);
        return;
      }
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(describe(again.error()));
    }
  }

private:
  static zmq::socket_t opened(Result<zmq::socket_t> socket) {
    if (!socket) throw std::runtime_error(describe(socket.error()));
    return std::move(*socket);
  }

  static bool is_readable(zmq::socket_t &socket, std::chrono::milliseconds wait = std::chrono::milliseconds{0}) {
    zmq::pollitem_t item{.socket = socket.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
    return zmq::poll(&item, 1, wait) == 1;
  }

  static void receive(zmq::socket_t &socket, zmq::message_t &message, const std::string &what) {
    socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(patience).count()));
    if (!socket.recv(message, zmq::recv_flags::none)) throw std::runtime_error("the sender never sent " + what);
  }

  zmq::context_t context_;
  zmq::socket_t jobs_;
  zmq::socket_t replies_;
  std::string jobs_endpoint_;
  std::string replies_endpoint_;
  Bytes routing_id_;
  std::set<Bytes> heard_; // routing ids of `hear_new_sender`
};

} // namespace onced::testing
