#include "support/raw_peer.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "onced/digest.hpp"

namespace onced::testing {
namespace {

constexpr int patience_ms = static_cast<int>(std::chrono::milliseconds(patience).count());

zmq::socket_t make_socket(zmq::context_t &context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::rcvtimeo, patience_ms);
  socket.set(zmq::sockopt::sndtimeo, patience_ms);
  return socket;
}

void send_part(zmq::socket_t &socket, BytesView part, zmq::send_flags flags) {
  if (!socket.send(zmq::const_buffer(part.data(), part.size()), flags)) {
    throw std::runtime_error("nobody took a message");
  }
}

void receive(zmq::socket_t &socket, zmq::message_t &message, const char *what) {
  if (!socket.recv(message)) throw std::runtime_error(std::string("waited in vain for ") + what);
}

} // namespace

std::string outcomes_of(const std::vector<OwnReply> &replies) {
  std::string names;
  for (const OwnReply &reply : replies)
    names.append(names.empty() ? "" : " ").append(traits_of(reply.outcome).name);
  return names;
}

Tag tag_of(BytesView job) {
  return Digester().tag(job);
}

SenderId sender_id(std::uint8_t fill) {
  SenderId id;
  id.bytes.fill(fill);
  return id;
}

// --- RawPeer ------------------------------------------------------------------------------------------------------

RawPeer::RawPeer(const WorkerProcess &worker, const SenderId &sender)
    : sender_(sender), jobs_(make_socket(context_, zmq::socket_type::push)),
      replies_(make_socket(context_, zmq::socket_type::dealer)) {
  jobs_.connect(worker.jobs());
  replies_.connect(worker.replies());
}

wire::Greeting RawPeer::greet() {
  say(wire::encode_hello(sender_));
  if (next_framing() != wire::WorkerFraming::greeting) throw std::runtime_error("not greeted");
  return message_.greeting;
}

void RawPeer::send(BytesView message) {
  send_part(jobs_, message, zmq::send_flags::none);
}

void RawPeer::send_parts(const std::vector<Bytes> &parts) {
  for (std::size_t at = 0; at < parts.size(); ++at)
    send_part(jobs_, parts[at], at + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
}

void RawPeer::say(BytesView frame) {
  send_part(replies_, frame, zmq::send_flags::none);
}

void RawPeer::send_batch(const std::vector<Bytes> &jobs, std::uint64_t first) {
  if (first != 0) next_sequence_ = first;
  std::vector<wire::BatchEntry> entries;
  for (const Bytes &job : jobs) {
    entries.push_back({.sequence = Sequence{next_sequence_++},
                       .tag = tag_of(job),
                       .attempt = 1,
                       .issued_at = WallTime{std::chrono::microseconds{1'700'000'000'000'000}},
                       .job = job});
  }
  Bytes batch;
  wire::encode_batch(sender_, entries, batch);
  send(batch);
}

void RawPeer::send_forged(const Bytes &job, std::uint64_t sequence, const Tag &tag) {
  const wire::BatchEntry entry{.sequence = Sequence{sequence}, .tag = tag, .attempt = 1, .issued_at = {}, .job = job};
  Bytes batch;
  wire::encode_batch(sender_, std::span(&entry, 1), batch);
  send(batch);
}

wire::WorkerFraming RawPeer::next_framing() {
  receive(replies_, frame_, "a message of the worker");
  return decoder_.decode(frame_.to_string_view(), message_);
}

std::vector<OwnReply> RawPeer::next_replies() {
  if (next_framing() != wire::WorkerFraming::replies) throw std::runtime_error("not a message of replies");
  std::vector<OwnReply> replies;
  for (const wire::Reply &reply : message_.replies.replies) {
    replies.push_back({.sequence = number_of(reply.sequence),
                       .tag = reply.tag,
                       .outcome = reply.outcome,
                       .result = Bytes(reply.result),
                       .detail = std::string(reply.detail),
                       .durability = std::string(name_of(message_.replies.durability))});
  }
  return replies;
}

std::vector<OwnReply> RawPeer::deliver(const std::vector<Bytes> &jobs) {
  send_batch(jobs);
  std::vector<OwnReply> replies;
  while (replies.size() < jobs.size()) {
    const auto more = next_replies();
    replies.insert(replies.end(), more.begin(), more.end());
  }
  std::sort(replies.begin(), replies.end(),
            [](const OwnReply &left, const OwnReply &right) { return left.sequence < right.sequence; });
  const std::uint64_t first = next_sequence_ - jobs.size();
  for (std::size_t at = 0; at < replies.size(); ++at) {
    if (at >= jobs.size() || replies[at].sequence != first + at || replies[at].tag != tag_of(jobs[at])) {
      throw std::runtime_error("the replies are not those to the jobs that were sent");
    }
  }
  return replies;
}

// --- FakeWorker ---------------------------------------------------------------------------------------------------

FakeWorker::FakeWorker()
    : jobs_(make_socket(context_, zmq::socket_type::pull)), replies_(make_socket(context_, zmq::socket_type::router)) {
  jobs_.bind("tcp://127.0.0.1:*");
  replies_.bind("tcp://127.0.0.1:*");
  jobs_endpoint_ = jobs_.get(zmq::sockopt::last_endpoint);
  replies_endpoint_ = replies_.get(zmq::sockopt::last_endpoint);
}

Arguments FakeWorker::send(const Arguments &more) const {
  return Arguments{"send", "--jobs", jobs_endpoint_, "--replies", replies_endpoint_} + more;
}

void FakeWorker::answer_next(BytesView frame) {
  receive(replies_, peer_, "a peer to speak");
  receive(replies_, message_, "what a peer says");
  say(frame);
}

void FakeWorker::say(BytesView frame) {
  send_part(replies_, peer_.to_string_view(), zmq::send_flags::sndmore);
  send_part(replies_, frame, zmq::send_flags::none);
}

const wire::Batch &FakeWorker::next_batch() {
  receive(jobs_, message_, "a batch of jobs");
  if (wire::decode_batch(message_.to_string_view(), batch_) != wire::Framing::batch)
    throw std::runtime_error("no batch");
  return batch_;
}

// --- BareConnection -----------------------------------------------------------------------------------------------

BareConnection::BareConnection(const std::string &endpoint) : tcp_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(tcp_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to " + endpoint);
  }
  // The greeting of ZMTP 3.0: signature, version, mechanism, and zeros up to 64 bytes.
  Bytes greeting = Bytes("\xFF\0\0\0\0\0\0\0\0\x7F\x03\0NULL", 16);
  greeting.resize(64, '\0');
  write(greeting);
  read_exactly(64);
  // A command frame: READY with the one property that is asked for.
  const Bytes ready = Bytes("\x05READY\x0BSocket-Type\0\0\0\x04PUSH", 26);
  write(Bytes{'\x04', static_cast<char>(ready.size())} + ready);
}

BareConnection::~BareConnection() {
  ::close(tcp_);
}

void BareConnection::send_frame(BytesView body, bool more) {
  if (body.size() > 255) throw std::runtime_error("only short frames are written here");
  write(Bytes{more ? '\x01' : '\x00', static_cast<char>(body.size())} + Bytes(body));
}

void BareConnection::announce(std::uint64_t bytes) {
  Bytes header{'\x02'}; // its length has eight bytes
  for (unsigned shift = 64; shift > 0; shift -= 8)
    header.push_back(static_cast<char>((bytes >> (shift - 8)) & 0xFFU));
  write(header);
}

bool BareConnection::is_closed_by_peer() {
  constexpr std::chrono::seconds before_heartbeats_time_out{10};
  const Deadline deadline = std::chrono::steady_clock::now() + before_heartbeats_time_out;
  std::array<char, 256> ignored{};
  pollfd ready{tcp_, POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    if (::recv(tcp_, ignored.data(), ignored.size(), 0) <= 0) return true;
  }
}

void BareConnection::write(BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(tcp_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) throw std::runtime_error("the worker took no more bytes");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void BareConnection::read_exactly(std::size_t bytes) {
  std::array<char, 64> ignored{};
  for (std::size_t left = bytes; left > 0;) {
    const ssize_t count = ::recv(tcp_, ignored.data(), std::min(left, ignored.size()), 0);
    if (count <= 0) throw std::runtime_error("the worker did not greet");
    left -= static_cast<std::size_t>(count);
  }
}

} // namespace onced::testing
