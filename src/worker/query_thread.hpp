#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "worker/counters.hpp"
#include "worker/outgoing.hpp"
#include "worker/store_keeper.hpp"

namespace onced::worker {

// Answers queries beside the gateway: counting scans everything, and nobody else should wait for it.
class QueryThread {
public:
  QueryThread(StoreKeeper &keeper, Counters &counters, Outgoing &outgoing)
      : keeper_(keeper), counters_(counters), outgoing_(outgoing) {}

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

  [[nodiscard]] Bytes answer(BytesView request);
  [[nodiscard]] Bytes stats();

  StoreKeeper &keeper_;
  Counters &counters_;
  Outgoing &outgoing_;
  std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::deque<Query> waiting_;
  bool closed_ = false;
};

} // namespace onced::worker
