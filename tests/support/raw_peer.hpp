#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"
#include "onced/outcome.hpp"
#include "support/worker_process.hpp"
#include "wire/messages.hpp"

// Peers that speak the protocol by hand, and so may also break it.
namespace onced::testing {

// One reply, with bytes of its own.
struct OwnReply {
  std::uint64_t sequence = 0;
  Tag tag;
  Outcome outcome = Outcome::busy;
  Bytes result;
  std::string detail;
  std::string durability;
};

// The outcomes' names, separated by spaces.
[[nodiscard]] std::string outcomes_of(const std::vector<OwnReply> &replies);

[[nodiscard]] Tag tag_of(BytesView job);
[[nodiscard]] SenderId sender_id(std::uint8_t fill);

// A producer without the sender's state machine: what it sends is sent once. Waits throw after `patience`.
class RawPeer {
public:
  explicit RawPeer(const WorkerProcess &worker, const SenderId &sender = sender_id(0x11));

  // Tells the worker the way back and waits for its greeting.
  wire::Greeting greet();

  // Sends a message, of one part or several, as it is.
  void send(BytesView message);
  void send_parts(const std::vector<Bytes> &parts);
  // Sends a frame to the replies socket.
  void say(BytesView frame);

  // Sends the jobs as one batch, numbered from `first`, the next unused number when that is 0.
  void send_batch(const std::vector<Bytes> &jobs, std::uint64_t first = 0);
  // Sends one job as a batch, with whatever sequence and tag.
  void send_forged(const Bytes &job, std::uint64_t sequence, const Tag &tag);
  // The next message of replies.
  [[nodiscard]] std::vector<OwnReply> next_replies();
  // The next message from the replies socket, whatever it is.
  [[nodiscard]] wire::WorkerFraming next_framing();

  // Sends the jobs as one batch and waits for all replies, which it returns in the jobs' order.
  std::vector<OwnReply> deliver(const std::vector<Bytes> &jobs);
  // The same for one job.
  [[nodiscard]] OwnReply deliver_one(const Bytes &job) { return deliver({job}).front(); }

  [[nodiscard]] const std::vector<std::uint64_t> &versions() const { return message_.versions; }

private:
  zmq::context_t context_;
  SenderId sender_;
  zmq::socket_t jobs_;
  zmq::socket_t replies_;
  std::uint64_t next_sequence_ = 1;
  wire::WorkerMessageDecoder decoder_;
  wire::WorkerMessage message_;
  zmq::message_t frame_; // message_ points into it
};

// A worker as far as its sockets go: a test decides what it answers.
class FakeWorker {
public:
  FakeWorker();

  [[nodiscard]] Arguments send(const Arguments &more = {}) const;
  [[nodiscard]] const std::string &replies_endpoint() const { return replies_endpoint_; }

  // Waits for something said on the replies socket and answers it with this frame.
  void answer_next(BytesView frame);
  // Sends a frame to whom was answered last.
  void say(BytesView frame);

  // Waits for a batch of jobs. Its views are valid until the next call.
  [[nodiscard]] const wire::Batch &next_batch();

private:
  zmq::context_t context_;
  zmq::socket_t jobs_;
  zmq::socket_t replies_;
  std::string jobs_endpoint_;
  std::string replies_endpoint_;
  zmq::message_t peer_;
  zmq::message_t message_;
  wire::Batch batch_;
};

// A tcp connection that speaks ZMTP 3.0 as a PUSH socket by hand: ZeroMQ itself would not send what it sends.
class BareConnection {
public:
  // Connects and shakes hands.
  explicit BareConnection(const std::string &endpoint);
  ~BareConnection();
  BareConnection(const BareConnection &) = delete;
  BareConnection &operator=(const BareConnection &) = delete;

  // A frame; with `more`, a part that another one follows.
  void send_frame(BytesView body, bool more);
  // A header that announces so many bytes, and none of them.
  void announce(std::uint64_t bytes);
  // Waits until the other side has closed the connection; false after 10 s, well before it would do so because this
  // side answers no heartbeats (which takes 15 s at least).
  [[nodiscard]] bool is_closed_by_peer();

private:
  void write(BytesView bytes);
  void read_exactly(std::size_t bytes);

  int tcp_;
};

} // namespace onced::testing
