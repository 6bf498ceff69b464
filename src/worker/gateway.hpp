#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <zmq.hpp>

#include "base/wake.hpp"
#include "onced/event_log.hpp"
#include "onced/kill_point.hpp"
#include "store/store_keeper.hpp"
#include "wire/messages.hpp"
#include "worker/counters.hpp"
#include "worker/handover.hpp"
#include "worker/outgoing.hpp"
#include "worker/query_threads.hpp"
#include "worker/reply_lab.hpp"
#include "worker/routes.hpp"
#include "worker/unread.hpp"

namespace onced::worker {

using store::StoreKeeper;

// Owns every socket: takes jobs in, hands replies and answers out. All calls on its one thread, unless they say
// otherwise.
class Gateway {
public:
  struct Sockets {
    zmq::socket_t jobs;
    zmq::socket_t replies;
    zmq::socket_t control;
  };

  Gateway(Sockets sockets, Durability durability, const StoreKeeper &keeper, Handover &handover, Outgoing &outgoing,
          QueryThreads &queries, Wake &wake, Counters &counters, KillSwitch &kill_switch, std::unique_ptr<ReplyLab> lab,
          EventLog &log);

  // Until `stop_reading` it takes jobs; until `finish` it sends what is handed out. Throws zmq::error_t on a broken
  // invariant.
  void run();

  // No more jobs are taken, and the hand-over is closed. Any thread.
  void stop_reading();
  // Everything has been handed out: send it and return from `run`. Any thread.
  void finish();

private:
  void follow_store();
  [[nodiscard]] wire::WorkerState state() const;
  [[nodiscard]] Bytes word_of_state() const;
  void note_wrong_socket(const char *where, const char *what);
  void receive_jobs();
  void receive_peers(bool control);
  void hear(bool control, PeerConnection from, BytesView frame);
  void ask(PeerAddress peer, BytesView request);
  void send_outgoing(bool all);
  void send(OutgoingFrame frame);
  void send_answer(const PeerAddress &peer, Bytes frame);
  void send_replies(const SenderId &sender, const Bytes &frame);
  bool send_to(bool control, BytesView routing_id, Bytes frame);

  Sockets sockets_;
  Durability durability_;
  const StoreKeeper &keeper_;
  StoreKeeper::State store_; // as it was when it was last looked at
  Handover &handover_;
  Outgoing &outgoing_;
  QueryThreads &queries_;
  Wake &wake_;
  Counters &counters_;
  KillSwitch &kill_switch_;
  std::unique_ptr<ReplyLab> lab_; // null: no knob is set
  EventLog &log_;
  Routes routes_;
  wire::WorkerState told_ = wire::WorkerState::ok; // to the senders that are known
  Unread unread_;                                  // of the peers of the replies socket
  Unread control_unread_;                          // and of the control socket
  std::atomic<bool> reading_{true};
  std::atomic<bool> finishing_{false};
};

} // namespace onced::worker
