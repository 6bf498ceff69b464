#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "onced/store.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

// Answers queries beside the gateway: counting scans everything, and nobody else should wait for it.
class QueryThread {
public:
  QueryThread(const Store &store, Outgoing &outgoing) : store_(store), outgoing_(outgoing) {}

  // Answers at once that it is busy when limits::queries_waiting_max are waiting. Any thread.
  void ask(PeerAddress peer, Bytes request);

  // Returns after `close`, when the query in hand is answered; those that wait are forgotten.
  void run();
  void close();

private:
  struct Query {
    PeerAddress peer;
    Bytes request;
  };

  const Store &store_;
  Outgoing &outgoing_;
  std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::deque<Query> waiting_;
  bool closed_ = false;
};

} // namespace onced::worker
