#include "worker/gateway.hpp"

#include <array>
#include <utility>

#include "admin/queries.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"
#include "worker/worker_state.hpp"

namespace onced::worker {
namespace {

// How much one socket may bring in before the others have their turn.
constexpr int jobs_a_turn = 256;
constexpr int peers_a_turn = 64;

bool is_jobs(BytesView frame) {
  wire::Batch batch;
  const auto framing = wire::decode_batch(frame, batch);
  return framing == wire::Framing::batch || framing == wire::Framing::bare_job;
}

// Of what comes to the jobs socket nearly all are batches, which have another head.
bool is_hello(BytesView frame) {
  constexpr char array_of_two = '\x92';
  if (frame.empty() || frame.front() != array_of_two) return false;
  wire::PeerMessage message;
  return wire::decode_peer_message(frame, message) == wire::PeerFraming::known;
}

} // namespace

Gateway::Gateway(Sockets sockets, Durability durability, const StoreKeeper &keeper, Handover &handover,
                 Outgoing &outgoing, QueryThreads &queries, Wake &wake, Counters &counters, KillSwitch &kill_switch,
                 std::unique_ptr<ReplyLab> lab, EventLog &log)
    : sockets_(std::move(sockets)), durability_(durability), keeper_(keeper), handover_(handover), outgoing_(outgoing),
      queries_(queries), wake_(wake), counters_(counters), kill_switch_(kill_switch), lab_(std::move(lab)), log_(log) {}

void Gateway::run() {
  while (true) {
    const bool finishing = finishing_; // read before the last look at what is to be sent
    send_outgoing(finishing);
    if (finishing) return;
    if (!reading_) handover_.close(); // here, so that whatever was taken before has been handed over
    follow_store();

    std::array<zmq::pollitem_t, 4> items{{
        {.socket = nullptr, .fd = wake_.descriptor(), .events = ZMQ_POLLIN, .revents = 0},
        {.socket = sockets_.replies.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
        {.socket = sockets_.control.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
        {.socket = sockets_.jobs.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
    }};
    const bool takes_jobs = reading_ && store_.available && !handover_.full();
    try {
      zmq::poll(items.data(), takes_jobs ? items.size() : items.size() - 1,
                lab_ ? lab_->wait() : std::chrono::milliseconds{-1});
    } catch (const zmq::error_t &error) {
      if (error.num() != EINTR) throw;
      continue;
    }
    wake_.clear();
    if ((items[1].revents & ZMQ_POLLIN) != 0) receive_peers(false);
    if ((items[2].revents & ZMQ_POLLIN) != 0) receive_peers(true);
    if (takes_jobs && (items[3].revents & ZMQ_POLLIN) != 0) receive_jobs();
  }
}

void Gateway::stop_reading() {
  reading_ = false;
  wake_.ring();
}

void Gateway::finish() {
  finishing_ = true;
  wake_.ring();
}

// While the store is not available no jobs are read, and every sender that is known is told why. A new opening is a new
// boot: they are greeted, and send again what they have not settled.
void Gateway::follow_store() {
  auto store = keeper_.state();
  const bool new_boot = store.available && store.boot != store_.boot;
  store_ = std::move(store);
  const wire::WorkerState now = state();
  if (std::exchange(told_, now) == now && !new_boot) return;
  const Bytes word = word_of_state();
  for (const Bytes &routing_id : routes_.connections())
    send_to(false, routing_id, word);
}

wire::WorkerState Gateway::state() const {
  return reading_ ? worker_state_of(store_) : wire::WorkerState::draining;
}

// What every hello is answered.
Bytes Gateway::word_of_state() const {
  return told_ == wire::WorkerState::ok ? wire::encode_greeting(store_.boot, durability_) : wire::encode_notice(told_);
}

void Gateway::receive_jobs() {
  for (int left = jobs_a_turn; left > 0 && reading_ && !handover_.full(); --left) {
    Arrival arrival;
    if (!sockets_.jobs.recv(arrival.frame, zmq::recv_flags::dontwait)) break;
    arrival.multipart = sockets_.jobs.get(zmq::sockopt::rcvmore);
    if (arrival.multipart) wire::discard_rest(sockets_.jobs);
    arrival.connection = wire::connection_of(arrival.frame);
    ++counters_.messages;
    kill_switch_.arrive(KillPoint::worker_received);
    // It is kept as a dead letter, as all that is no job.
    if (!arrival.multipart && is_hello(arrival.frame.to_string_view())) note_wrong_socket("jobs", "hello");
    handover_.put(std::move(arrival));
  }
  handover_.announce();
}

void Gateway::receive_peers(bool control) {
  zmq::socket_t &socket = control ? sockets_.control : sockets_.replies;
  for (int left = peers_a_turn; left > 0; --left) {
    zmq::message_t routing_id;
    zmq::message_t frame;
    if (!socket.recv(routing_id, zmq::recv_flags::dontwait)) return;
    const bool has_frame = socket.get(zmq::sockopt::rcvmore);
    if (has_frame) static_cast<void>(socket.recv(frame, zmq::recv_flags::none));
    const bool has_more = socket.get(zmq::sockopt::rcvmore);
    if (has_more) wire::discard_rest(socket);
    if (!has_frame || has_more) continue;
    hear(control, {.descriptor = wire::connection_of(frame), .routing_id = routing_id.to_string()},
         frame.to_string_view());
  }
}

// What a peer says: a greeting, or a query.
void Gateway::hear(bool control, PeerConnection from, BytesView frame) {
  wire::PeerMessage message;
  switch (wire::decode_peer_message(frame, message)) {
  case wire::PeerFraming::unsupported:
    send_to(control, from.routing_id, wire::encode_unsupported());
    return;
  case wire::PeerFraming::malformed:
    ++counters_.malformed_peer_messages;
    if (is_jobs(frame)) return note_wrong_socket(control ? "control" : "replies", "jobs");
    log_.write({.level = EventLevel::warning,
                .name = "peer.malformed",
                .fields = {{"bytes", static_cast<std::uint64_t>(frame.size())}}});
    return;
  case wire::PeerFraming::known:
    break;
  }
  if (message.request) {
    ++counters_.queries;
    ask({.control = control, .routing_id = std::move(from.routing_id)}, *message.request);
    return;
  }
  ++counters_.greetings;
  if (!control) routes_.learn(message.sender, from);
  send_to(control, from.routing_id, word_of_state());
}

// Who does not read the answers it has is given no more.
void Gateway::ask(PeerAddress peer, BytesView request) {
  const Unread &unread = peer.control ? control_unread_ : unread_;
  if (unread.has_room(peer.routing_id, limits::unread_bytes_max / 2)) {
    queries_.ask(std::move(peer), Bytes(request));
  } else {
    send_to(peer.control, peer.routing_id, wire::encode_answer(admin::answer_too_many()));
  }
}

void Gateway::note_wrong_socket(const char *where, const char *what) {
  ++counters_.wrong_socket;
  log_.write({.level = EventLevel::warning,
              .name = "peer.wrong_socket",
              .fields = {{"socket", std::string(where)}, {"message", std::string(what)}}});
}

void Gateway::send_outgoing(bool all) {
  auto batches = outgoing_.take();
  if (lab_) batches = lab_->disturb(std::move(batches), all);
  for (auto &frames : batches) {
    bool replies = false;
    for (OutgoingFrame &frame : frames) {
      replies = replies || std::holds_alternative<SenderId>(frame.to);
      send(std::move(frame));
    }
    if (replies) kill_switch_.arrive(KillPoint::worker_after_reply);
  }
}

void Gateway::send(OutgoingFrame frame) {
  if (const auto *peer = std::get_if<PeerAddress>(&frame.to)) {
    send_answer(*peer, std::move(frame.frame));
  } else {
    send_replies(std::get<SenderId>(frame.to), frame.frame);
  }
}

void Gateway::send_answer(const PeerAddress &peer, Bytes frame) {
  const Unread &unread = peer.control ? control_unread_ : unread_;
  if (!unread.has_room(peer.routing_id, frame.size())) frame = wire::encode_answer(admin::answer_too_many());
  send_to(peer.control, peer.routing_id, std::move(frame));
}

// Never blocks: a reply that cannot go out now is dropped, and the next delivery of its job asks for it again.
void Gateway::send_replies(const SenderId &sender, const Bytes &frame) {
  const auto routes = routes_.find(sender);
  bool sent = false;
  for (const Bytes &routing_id : routes) {
    if (unread_.has_room(routing_id, frame.size()) && send_to(false, routing_id, frame)) sent = true;
  }
  if (sent) {
    ++counters_.reply_frames;
    return;
  }
  ++counters_.reply_frames_dropped;
  log_.write({.level = EventLevel::warning,
              .name = "reply.dropped",
              .fields = {{"sender", handle_of(sender)}, {"known", !routes.empty()}}});
}

bool Gateway::send_to(bool control, BytesView routing_id, Bytes frame) {
  zmq::socket_t &socket = control ? sockets_.control : sockets_.replies;
  try {
    const auto to = zmq::const_buffer(routing_id.data(), routing_id.size());
    if (!socket.send(to, zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false; // its pipe is full
    auto message = (control ? control_unread_ : unread_).message_for(routing_id, std::move(frame));
    return socket.send(message, zmq::send_flags::dontwait).has_value();
  } catch (const zmq::error_t &error) {
    if (error.num() != EHOSTUNREACH) throw;
    if (!control) routes_.forget(routing_id); // it is gone
    return false;
  }
}

} // namespace onced::worker
