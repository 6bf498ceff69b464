#pragma once

#include <atomic>
#include <string>

#include <zmq.hpp>

#include "onced/event_log.hpp"
#include "onced/kill_point.hpp"
#include "onced/store.hpp"
#include "wire/wake.hpp"
#include "worker/handover.hpp"
#include "worker/outgoing.hpp"
#include "worker/query_thread.hpp"
#include "worker/routes.hpp"

namespace onced::worker {

// What the gateway tells every peer of this opening of the store.
struct Greeting {
  BootId boot;
  Durability durability = Durability::fsync;
};

// Owns every socket: takes jobs in, hands replies and answers out. All calls on its one thread, unless they say
// otherwise.
class Gateway {
public:
  struct Sockets {
    zmq::socket_t jobs;
    zmq::socket_t replies;
    zmq::socket_t control;
  };

  Gateway(Sockets sockets, Greeting greeting, Handover &handover, Outgoing &outgoing, QueryThread &queries,
          wire::Wake &wake, KillSwitch &kill_switch, EventLog &log);

  // Until `stop_reading` it takes jobs; until `finish` it sends what is handed out. Throws zmq::error_t on a broken
  // invariant.
  void run();

  // No more jobs are taken. Any thread.
  void stop_reading();
  // Everything has been handed out: send it and return from `run`. Any thread.
  void finish();

private:
  void receive_jobs();
  void receive_peers(bool control);
  void hear(bool control, Bytes routing_id, BytesView frame);
  void send_outgoing();
  void send(const OutgoingFrame &frame);
  bool send_to(bool control, BytesView routing_id, BytesView frame);

  Sockets sockets_;
  Greeting greeting_;
  Handover &handover_;
  Outgoing &outgoing_;
  QueryThread &queries_;
  wire::Wake &wake_;
  KillSwitch &kill_switch_;
  EventLog &log_;
  Routes routes_;
  std::atomic<bool> reading_{true};
  std::atomic<bool> finishing_{false};
};

} // namespace onced::worker
