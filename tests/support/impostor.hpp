#pragma once

#include <chrono>
#include <stdexcept>

#include <zmq.hpp>

#include "support/job_bytes.hpp"
#include "support/worker_process.hpp"
#include "wire/messages.hpp"

namespace onced::testing {

// A worker's sockets at the endpoints of one that does not run yet.
class Impostor {
public:
  explicit Impostor(const WorkerProcess &worker) {
    for (zmq::socket_t *socket : {&jobs_, &replies_}) {
      socket->set(zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(patience).count()));
    }
    jobs_.bind(worker.jobs());
    replies_.bind(worker.replies());
  }

  void greet_next() {
    zmq::message_t hello;
    receive(replies_, peer_);
    receive(replies_, hello);
    say(wire::encode_greeting(boot_, Durability::fsync));
  }
  // The same peer again, as another boot.
  void greet_as_new_boot() {
    ++boot_.bytes[0];
    say(wire::encode_greeting(boot_, Durability::fsync));
  }
  void say(BytesView frame) {
    replies_.send(zmq::const_buffer(peer_.data(), peer_.size()), zmq::send_flags::sndmore);
    replies_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  }
  // A batch of jobs; its views are valid until the next call.
  const wire::Batch &next_batch() {
    receive(jobs_, message_);
    if (wire::decode_batch(message_.to_string_view(), batch_) != wire::Framing::batch)
      throw std::runtime_error("no batch");
    return batch_;
  }
  // A frame with one reply, which would settle the job were it not for what is wrong with it.
  [[nodiscard]] Bytes frame_of(Sequence sequence, const Tag &tag, Outcome outcome) const {
    wire::RepliesEncoder replies(boot_, Durability::fsync);
    const Bytes wrong = integer_result(999'999);
    replies.add({.sequence = sequence, .tag = tag, .outcome = outcome, .result = wrong, .detail = "forged"});
    return replies.take().front();
  }

private:
  static void receive(zmq::socket_t &socket, zmq::message_t &message) {
    if (!socket.recv(message)) throw std::runtime_error("waited in vain for a sender");
  }

  BootId boot_{};
  zmq::context_t context_;
  zmq::socket_t jobs_{context_, zmq::socket_type::pull};
  zmq::socket_t replies_{context_, zmq::socket_type::router};
  zmq::message_t peer_;
  zmq::message_t message_;
  wire::Batch batch_;
};

} // namespace onced::testing
